#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "loop/progress.h"

namespace cputrain::checkpoint {

/// How often checkpoints are taken: at each of these marks. All nothing: never (`0`).
struct Marks {
  std::optional<std::uint64_t> steps{};
  std::optional<double> seconds{};
  std::optional<int> epochs{};

  bool none() const { return !steps && !seconds && !epochs; }
};

/// When checkpoints are due. Marks of steps are kept to the letter: multiples of N, counted from
/// the first step of the training. Marks of seconds (since the one before) and epochs wait until
/// this checkpoint and all before it cost at most 1 % of the time since the training (of this
/// process) began: what one costs is known from the one before, and guessed from its size before
/// the first. Epochs that wait so are made up for in the middle of the next.
class Schedule {
 public:
  /// `start`: where this process took the training up. `bytes`: of a checkpoint, about.
  Schedule(const Marks&, const loop::Progress& start, std::size_t bytes);

  /// Whether one is due at this place, `now` in seconds of a clock that began with the training.
  bool due(const loop::Progress&, double now) const;
  /// One was taken there, which kept the training for `seconds`.
  void taken(const loop::Progress&, double now, double seconds);
  /// All that was taken is written; the thread that writes took so much CPU time of the training's
  /// cores, in all.
  void written(double seconds_in_all);

 private:
  double cost_so_far() const;

  Marks marks_;
  std::uint64_t last_step_;
  int last_epoch_;
  double last_time_ = 0;
  double kept_ = 0, thread_ = 0;  ///< seconds of the training, CPU seconds of the thread, in all
  double expected_;               ///< cost of one
  double before_ = 0;             ///< cost of all before the last one, while that is being written
  bool writing_ = false;
};

}  // namespace cputrain::checkpoint
