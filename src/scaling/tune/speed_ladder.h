#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scaling/tune/ladder.h"
#include "scaling/tune/work_left.h"
#include "training/plan/training_plan.h"
#include "training/session/session.h"

/// Images/s and memory of training steps by one size: micro-batch or batch.
namespace cputrain::tune {

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
  std::vector<int> rungs;  ///< ascend; at least one
  int usual;               ///< as Ladder has it
  bool larger_alone;
  std::function<training::TrainingSpec(int value)> spec;  ///< makes the training with this value
};

/// What this process holds at most from now on counts; now that is what it has.
MemoryBytes begin_peak();

/// Climbs the ladder: the best size so far and the next one are in memory at once and take turns in
/// short rounds. The best is compared with the usual size, too, where advice depends on it. Steps
/// compute all layers: what frozen ones make of images is not kept. A line on standard error for
/// each size, and before the first one how long all is likely to take. Error(usage) where the first
/// has no room.
/// Collective; the same on all ranks.
Ladder measure_ladder(StepBench&, const LadderRequest&);

}  // namespace cputrain::tune
