#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "data/batch_plan.h"
#include "loop/step.h"
#include "training/training.h"

namespace cputrain::training {

/// Steps of a training one by one, for who times or tries them: with a learning rate of the
/// caller's, without schedule, validation or checkpoints. The training is borrowed, and has started
/// by the first step. Every call is collective, and throws Error(data) where an image is not the
/// data's any more.
class SingleSteps {
 public:
  explicit SingleSteps(Training& training) : training_(training) {}

  /// The next step, epoch after epoch; the mean loss of its images, which it waits for.
  double next(double learning_rate);
  /// The first step of another epoch. It waits for the sums of the step before, not for its own, so
  /// a device always has one to compute: the time of this call is then that of the one before.
  void begin_epoch(double learning_rate);

  int made() const { return static_cast<int>(made_); }
  /// Whether the program of rank 0 tried algorithms in the last step.
  bool tried() const { return last_.trying; }

 private:
  void make(const data::BatchPlan&, std::size_t in_epoch, double learning_rate);

  Training& training_;
  std::optional<data::BatchPlan> plan_;  ///< the epoch that next() is in
  std::size_t in_epoch_ = 0;             ///< its next step
  int epoch_ = 0;                        ///< the next one to begin
  std::uint64_t made_ = 0;
  loop::StepResult last_;  ///< whose sums may not be there yet
};

}  // namespace cputrain::training
