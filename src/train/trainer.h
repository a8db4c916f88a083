#pragma once

#include <functional>
#include <optional>

#include "logging/reporter.h"
#include "train/evaluate.h"
#include "train/step.h"

namespace cputrain::train {

struct TrainOptions {
  int epochs = 1;
  std::optional<std::uint64_t> steps;  ///< ends the training after so many, whatever `epochs` says
  /// With `steps`: goes on until so many whole steps were settled (they tried no algorithms, and
  /// were not the first), but makes no more than kMostWarmUp times `steps`.
  std::uint64_t settled_steps = 0;
  std::uint64_t seed = 0;
  std::optional<double> target_accuracy{};  ///< of validation: ends the training when reached
  std::vector<std::string> hosts{};         ///< by rank: names a straggler
  std::vector<int> cpus{};  ///< that this rank may compute on, to ask what was stolen; empty: all
};

/// A training that waits for settled steps and never sees them must end, too.
inline constexpr std::uint64_t kMostWarmUp = 10;

/// What is evaluated after every epoch; nothing with --limit-val 0.
struct Validation {
  data::BatchSource& batches;
  const data::BatchPlan& plan;
};

struct TrainResult {
  std::uint64_t steps = 0;
  std::uint64_t settled_steps = 0;
  int epochs = 0;        ///< begun
  bool stopped = false;  ///< on request, before the end
  double seconds = 0;    ///< training and evaluation
  double training_seconds = 0;
  std::optional<logging::TimeToAccuracy> reached{};  ///< the target accuracy
  std::optional<logging::EpochRecord> last;
};

/// Whether the program tries its algorithms again at the start of this epoch, which counts from 1:
/// in epochs 2, 3, 5, 9, 17, ... What is quickest depends on how many zeros there are, which
/// changes ever less, and where an epoch has few steps, trying in each would be much of it.
bool tries_again(int epoch);

/// Synchronous SGD over epochs. `stop_requested` is asked once a step; all ranks then stop after
/// the same step. Throws Error(failed) when the loss of a step or of a validation is not a number;
/// the reporter has heard of that step or epoch then.
TrainResult train(const TrainingParts&, const std::optional<Validation>&, const TrainOptions&,
                  logging::Reporter&, const std::function<bool()>& stop_requested);

/// Collective: Error(failed) on all ranks where some weights of one are not numbers. A network can
/// hide them from its loss, and the last step's loss is from before its update.
void check_weights(comm::Communicator&, compute::Memory&, const Array& weights);

}  // namespace cputrain::train
