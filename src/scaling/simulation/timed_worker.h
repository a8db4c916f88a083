#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/batch_plan.h"
#include "scaling/simulation/calibrate.h"
#include "system/pages.h"

namespace cputrain::simulation {

/// Means of passes of one size that followed each other: of each layer, and of the whole behind
/// them, layers and what is between them, without a name.
using TimedRound = std::vector<LayerSeconds>;

/// A rank of a calibration: a backend, programs for all sizes and gradients of its own. A team's
/// ranks read the same weights, as the ranks of a node do.
class TimedWorker {
 public:
  TimedWorker(const Calibration& todo, Team team, int number)
      : todo_(todo),
        team_(team),
        number_(number),
        order_(data::epoch_order(todo.images.size(), todo.seed, 0)),
        next_(static_cast<std::size_t>(number)) {}

  /// To be called on each thread that uses the worker before anything else.
  void bind() const { todo_.bind(cpus()); }
  std::vector<int> cpus() const { return todo_.cpus(number_, team_.threads); }
  /// Error(usage) for a backend whose weights ranks could not share.
  void start();
  /// Programs of all sizes. `weights` is asked for the arena with each of them.
  void compile(const std::function<Array(const compute::ParameterLayout&)>& weights);
  /// Trains so many times, from other weights and with other images each time, and keeps the
  /// weights after a few steps of each: kernels skip zeros, and how many there are differs between
  /// trainings, and between their steps.
  void train(int trainings);
  int kept() const { return static_cast<int>(kept_.size()); }
  /// Those that a worker of this or another team has kept, by number.
  void use_weights(const TimedWorker& trained, int kept);
  /// Passes until the program of this size has found its algorithms. Seconds of one more.
  double warm_up(std::size_t size);
  void time_passes(std::size_t size, int count);

  /// Seconds a number of its part of an update.
  double time_update();
  /// Bytes a second that adding two arrays reads and writes.
  double time_sum();

  compute::Backend& backend() { return *backend_; }
  compute::Program& program(std::size_t size) const { return *programs_[size]; }
  std::size_t gradient_size() const { return programs_[0]->layout().gradient_size; }
  const std::vector<TimedRound>& rounds(std::size_t size) const { return rounds_[size]; }
  /// Seconds of each timed pass of this size, forward and backward together.
  const std::vector<double>& passes(std::size_t size) const { return passes_[size]; }

 private:
  /// A pass of the images from `first` on in the order of an epoch. `scale` is that of the gradient
  /// of the mean loss.
  LayerSeconds pass(std::size_t size, std::size_t first, std::uint64_t step, compute::Accumulate,
                    double scale);
  /// With the next images of those from `first` on.
  void train_step(compute::Update& update, optim::UpdateStep& step, std::size_t first);
  /// A pass of the next images.
  LayerSeconds next_pass(std::size_t size, compute::Accumulate);
  Array gradients() const;
  optim::UpdateSlice slice(Range own, std::vector<std::unique_ptr<system::Pages>>& state) const;

  const Calibration& todo_;
  Team team_;
  int number_;
  std::vector<std::uint32_t> order_;  ///< images' order in the first epoch
  std::size_t next_ = 0;              ///< in this order
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<system::Pages> gradients_;
  std::vector<std::unique_ptr<compute::Program>> programs_;  ///< by size
  Array weights_;
  std::vector<std::unique_ptr<system::Pages>> kept_;  ///< weights
  std::vector<std::vector<TimedRound>> rounds_;       ///< by size
  std::vector<std::vector<double>> passes_;
  std::vector<const std::uint8_t*> pixels_;
  std::vector<std::uint8_t> space_;  ///< for those that are read when they are needed
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
};

}  // namespace cputrain::simulation
