#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cells/cells.h"
#include "core/budget.h"

namespace cputrain::cells {

/// Time in which ranks could not compute: what they lacked, how much of it, and what to try.
struct LostTime {
  const char* what;  ///< "images", "communication", "balance", "host", "CPUs"
  double share;      ///< 0 to 1
  std::string sentence;
};

/// What a training lost enough of to matter, the most first: waiting for images, for sums that
/// backward did not hide, and for the slowest rank (kWaitLimits of its seconds); CPU time that a
/// host or other threads took (kStolenWorthSaying, kWaitWorthSaying).
std::vector<LostTime> lost_time(const Budget&, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait);

/// What a cell lost; nothing where its budget is not known.
std::vector<LostTime> lost_time_of(const Cell&);

/// Seconds of the clock on the wall that a training lost, and where, as far as its folder tells.
struct LostSeconds {
  /// How often, how long, and how long because of whom: "rank 2 on vm".
  struct Loss {
    int times = 0;
    double seconds = 0;
    std::map<std::string, double> whose{};
  };
  Loss restarts;     ///< from a checkpoint until a training that had died went on from it
  Loss checkpoints;  ///< steps that waited for one, since the last start
  Loss stragglers;   ///< ranks waited for the last one; stalls are in it, too
  Loss stalls;       ///< no rank got further, and then the job did

  bool any() const;
};

/// Reads metrics.jsonl and stalls.jsonl; lines that cannot be read are passed over.
LostSeconds lost_seconds(const std::filesystem::path& run);

/// "2 restarts 35.2 s, checkpoints 3.1 s, stragglers 12.0 s (most: rank 1 on vm), 1 stall 8.0 s
/// (most: rank 2 on vm)": what is a second or more; empty where nothing is.
std::string text_of(const LostSeconds&);

}  // namespace cputrain::cells
