#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scaling/tune/climb.h"
#include "scaling/tune/work_left.h"
#include "training/session/session.h"
#include "training/training_plan.h"

/// Images/s and memory of training steps by one size: micro-batch or batch.
namespace cputrain::tune {

struct MemoryBytes {
  std::size_t rank = 0;  ///< on the rank with most
  std::size_t node = 0;  ///< all ranks of the node with most
};

/// A size that was measured.
struct Rung {
  int value = 0;
  std::vector<double> images_per_second{};  ///< by round, in all contests
  MemoryBytes planned{};                    ///< as --dry-run has it, but for decoded images
  std::optional<MemoryBytes> measured{};    ///< resident at the most; of host memory alone
  std::optional<int> against{};             ///< the best rung when this one was tried
  std::optional<Gain> gain{};
};

struct Ladder {
  std::string flag;         ///< whose values rungs are: "micro-batch"
  std::vector<Rung> rungs;  ///< in the order in which they were tried
  Climb climb;
  std::string no_room;  ///< why the next rung was not measured, where memory ended the climb

  const Rung& best() const;
};

/// What steps are made of; all borrowed but the data.
struct StepBench {
  training::Session& session;
  int classes;
  std::shared_ptr<const data::DataSource> source;
  std::shared_ptr<const data::DecodedData> data;
  /// By this process, and its part, before images were decoded; and what a training leaves.
  MemoryBytes held_before;
  std::optional<int> rounds;  ///< per contest; else as many as fill some seconds
  WorkLeft left{{}, {}};      ///< its first ladder is the next that is measured
  bool told = false;          ///< how long it takes
};

struct LadderRequest {
  std::string flag;
  std::vector<int> rungs;                                 ///< ascend; at least one
  std::function<training::TrainingSpec(int value)> spec;  ///< makes the training with this value
};

/// What this process holds at most from now on counts; now that is what it has.
MemoryBytes begin_peak();

/// Climbs the ladder: the best size so far and the next one are in memory at once and take turns in
/// short rounds. A line on standard error for each, and before the first one how long all takes at
/// the most. Error(usage) where the first has no room.
/// Collective; the same on all ranks.
Ladder measure_ladder(StepBench&, const LadderRequest&);

}  // namespace cputrain::tune
