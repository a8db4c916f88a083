#pragma once

#include <map>

#include "runfiles/metrics.h"

namespace cputrain::runfiles {

/// Seconds of the clock on the wall that a training lost, and where, as far as its folder tells.
struct LostSeconds {
  /// How often, how long, and how long because of which rank: "rank 2 on vm".
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

/// From the run's metrics, and its stalls.jsonl; lines that cannot be read are passed over.
LostSeconds lost_seconds(const std::filesystem::path& run, const Metrics&);

/// "2 restarts 35.2 s, checkpoints 3.1 s, stragglers 12.0 s (most: rank 1 on vm), 1 stall 8.0 s
/// (most: rank 2 on vm)": what is a second or more; empty where nothing is.
std::string text_of(const LostSeconds&);

}  // namespace cputrain::runfiles
