#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "compute/tally.h"
#include "core/budget.h"

namespace cputrain::logging {

struct EpochStart {
  int epoch = 1;              ///< counts from 1
  std::optional<int> epochs;  ///< nothing where --steps ends the training
  std::size_t steps = 0;      ///< of this epoch
  std::size_t made = 0;       ///< of these, where a training goes on in the middle of it
};

/// A training goes on from a checkpoint.
struct ResumeRecord {
  std::uint64_t step = 0;                 ///< steps made
  int epoch = 1;                          ///< that goes on or begins; counts from 1
  std::size_t made = 0;                   ///< steps of this epoch
  int ranks = 1;                          ///< now
  std::string checkpoint{};               ///< the name of its folder
  std::string kernels{};                  ///< how it computes, where that was measured
  std::vector<std::uint64_t> left_out{};  ///< steps that it goes without
  /// Since that checkpoint, where the training did not end by itself: all of it was in vain.
  std::optional<double> lost_seconds{};
};

struct StepRecord {
  std::uint64_t step = 0;         ///< counts from 1 over the whole training
  int epoch = 0;                  ///< counts from 1
  std::size_t step_in_epoch = 0;  ///< counts from 1
  compute::Tally tally{};         ///< of this step, over all ranks
  compute::Tally epoch_tally{};   ///< of the epoch so far
  double learning_rate = 0;
  double seconds = 0;
  bool trying = false;  ///< algorithms were tried during it, so it took longer than others
  /// It changed nothing and is in no sum, since its gradients were no numbers (--on-nan). Its loss
  /// is none either.
  bool skipped = false;
};

/// The part of an epoch that shows the speed of a long training: its steps from the second on, in
/// which no algorithms were tried.
struct SettledSteps {
  std::size_t steps = 0;
  double seconds = 0;  ///< mean over ranks
  Budget budget{};     ///< mean over ranks; adds up to `seconds`
};

/// The rank for which the others waited longest.
struct Straggler {
  int rank = 0;
  std::string host;
  double seconds = 0;  ///< that the others waited more than it, on average
};

struct EpochRecord {
  int epoch = 0;
  std::size_t steps = 0;
  compute::Tally train{};                      ///< sums during the epoch, while the weights changed
  std::optional<compute::Tally> validation{};  ///< after it
  double learning_rate = 0;                    ///< of the last step
  double seconds = 0;                          ///< of training; evaluation is not in it
  double validation_seconds = 0;
  Budget budget{};  ///< mean over ranks; adds up to `seconds`
  SettledSteps settled{};
  std::optional<Straggler> straggler{};  ///< where there are others
  /// Part, 0 to 1, that a virtual machine's host took of the time of a rank's CPUs: of the rank
  /// that lost most, since the others wait for it. Nothing where it is not known.
  std::optional<double> stolen{};
  /// Part, 0 to 1, of the time for which a rank's threads wanted a CPU that they waited for one
  /// (system/lost_time/cpu_wait.h): of the rank that waited most. Nothing where it is not known.
  std::optional<double> cpu_wait{};
  std::size_t skipped = 0;  ///< of the steps: see StepRecord
  std::string kernels{};    ///< how the program computes, where it measured that; else empty
};

/// When the accuracy of validation first was what a person asked for.
struct TimeToAccuracy {
  double target = 0;
  double accuracy = 0;
  int epoch = 0;
  double seconds = 0;  ///< of training until then, evaluations left out
};

/// The most memory that a training held.
struct PeakMemory {
  std::uint64_t rank_bytes = 0;  ///< resident, of the rank with most
  std::uint64_t node_bytes = 0;  ///< of all ranks of the node with most, shared memory counted once
  std::string host{};            ///< that node
  std::optional<std::uint64_t>
      device_bytes{};  ///< taken of a device's own memory by the rank with most
};

/// Where the time of this process went, from its start until its results were on disk.
struct ProgramSeconds {
  double all = 0;
  double start_up = 0;  ///< until the first step
  double training = 0;
  double evaluation = 0;

  /// Checkpoints, weights, what a rollback makes again.
  double other() const { return all - start_up - training - evaluation; }
};

struct SummaryRecord {
  std::string outcome;  ///< "finished", "interrupted"
  std::uint64_t steps = 0;
  int epochs = 0;
  double seconds = 0;  ///< of training and evaluation
  double training_seconds = 0;
  std::optional<EpochRecord> last{};
  std::optional<double> target_accuracy{};
  std::optional<TimeToAccuracy> reached{};
  int best_epoch = 0;  ///< whose validation had the least loss, from 1; 0: nothing was validated
  double best_loss = std::numeric_limits<double>::infinity();
  std::optional<double> best_accuracy{};  ///< of that validation
  bool early_stopped = false;             ///< it was waited long enough for a better one
  std::optional<PeakMemory> memory{};
  std::string weights_hash{};
  std::string weights_file{};
  ProgramSeconds program{};
  double checkpoint_seconds = 0;  ///< that steps waited for checkpoints, in this process
  std::string training{};         ///< what it was, as the text of a JSON object; empty: not known
};

/// Hears what happens. The loop emits records; who prints what is decided where it is built.
class Reporter {
 public:
  virtual ~Reporter() = default;
  /// Comes first, where a training goes on.
  virtual void resumed([[maybe_unused]] const ResumeRecord&) {}
  virtual void begin_epoch(const EpochStart&) = 0;
  virtual void step(const StepRecord&) = 0;
  /// So many of all images have been evaluated behind an epoch: at least once a batch.
  virtual void validating([[maybe_unused]] std::size_t images, [[maybe_unused]] std::size_t all) {}
  virtual void epoch(const EpochRecord&) = 0;
  virtual void summary(const SummaryRecord&) = 0;
};

}  // namespace cputrain::logging
