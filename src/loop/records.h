#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "compute/tally.h"
#include "core/budget.h"

/// What the loop records of its steps and epochs, and who hears of it.
namespace cputrain::loop {

struct EpochStart {
  int epoch = 1;              ///< counts from 1
  std::optional<int> epochs;  ///< nothing where --steps ends the training
  std::size_t steps = 0;      ///< of this epoch
  std::size_t made = 0;       ///< of these, where a training goes on in the middle of it
};

struct StepRecord {
  std::uint64_t step = 0;         ///< counts from 1 over the whole training
  int epoch = 0;                  ///< counts from 1
  std::size_t step_in_epoch = 0;  ///< counts from 1
  compute::Tally tally{};         ///< of this step, over all ranks
  compute::Tally epoch_tally{};   ///< the epoch so far
  double learning_rate = 0;
  double seconds = 0;
  bool trying = false;  ///< algorithms were tried during it, so it took longer than others
  /// It changed nothing and is in no sum, since its gradients were NaN or infinite (--on-nan). Its
  /// loss is NaN, too.
  bool skipped = false;
  bool ends_epoch = false;  ///< the last of its epoch
};

/// The part of an epoch that shows the speed of a long training: its steps from the second on, in
/// which no algorithms were tried.
struct SettledSteps {
  std::size_t steps = 0;
  double seconds = 0;
  Budget budget{};  ///< adds up to `seconds`
};

/// An epoch's steps so far: what a checkpoint within the epoch keeps.
struct EpochSums {
  std::size_t steps = 0;
  std::size_t skipped = 0;  ///< of these, without an update: see StepRecord
  compute::Tally train{};   ///< over these steps and all ranks, while the weights changed
  double seconds = 0;       ///< training alone, without evaluation
  Budget budget{};          ///< adds up to `seconds` at the end of the epoch
  SettledSteps settled{};
  double learning_rate = 0;  ///< its last step's
  /// Images whose frozen layers were not computed, since what they make was kept; of this rank, and
  /// of all ranks at the end of the epoch.
  double from_features = 0;
};

/// The rank for which the others waited longest.
struct Straggler {
  int rank = 0;
  std::string host;
  double seconds = 0;  ///< that the others waited more than it, on average
};

/// An epoch that has ended. Seconds and budgets of its sums are means over ranks.
struct EpochRecord : EpochSums {
  int epoch = 0;                               ///< counts from 1
  std::optional<compute::Tally> validation{};  ///< after it
  std::optional<compute::Tally> averaged{};    ///< the same with averages of weights
  double validation_seconds = 0;
  std::optional<Straggler> straggler{};  ///< where there are others
  TakenTime taken{};
  std::string kernels{};  ///< how the program computes, where it measured that; else empty
};

/// When the accuracy of validation first was what a person asked for.
struct TimeToAccuracy {
  double target = 0;
  double accuracy = 0;
  int epoch = 0;
  double seconds = 0;  ///< training until then, without evaluations
};

/// The most memory that a training held.
struct PeakMemory {
  std::uint64_t rank_bytes = 0;  ///< resident, of the rank with most
  std::uint64_t node_bytes = 0;  ///< all ranks of the node with most, shared memory counted once
  std::string host{};            ///< that node
  /// Taken of a device's own memory by the rank with most.
  std::optional<std::uint64_t> device_bytes{};
};

/// Hears from the loop what happens. By default it does nothing with it.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void begin_epoch(const EpochStart&) {}
  virtual void step(const StepRecord&) {}
  /// So many of all images have been evaluated behind an epoch: at least once a batch.
  virtual void validating([[maybe_unused]] std::size_t images, [[maybe_unused]] std::size_t all) {}
  virtual void epoch(const EpochRecord&) {}
  /// A plateau changed the learning rate, which is this one from that epoch on (from 1). After the
  /// epoch before, unless it was the last one.
  virtual void rate_changed([[maybe_unused]] int epoch, [[maybe_unused]] double rate) {}
};

}  // namespace cputrain::loop
