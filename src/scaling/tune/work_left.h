#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// How long what is left of a tuning takes, from what its steps have taken so far.
namespace cputrain::tune {

/// Steps of a round in which sizes take turns: a quarter of a second of them.
int steps_of_round(double step_seconds);
/// Rounds that a contest begins with, of so many seconds for all sizes together: those that were
/// asked for, or 3 to 9 that fill 8 seconds.
int usual_rounds(double seconds, std::optional<int> asked);
/// A contest that does not tell which size is quicker has up to so many times as many.
inline constexpr int kMostRounds = 2;

/// Sizes that are still to be tried, in the order of trying: each is compared with one before it.
struct LadderLeft {
  std::string flag;                 ///< "micro-batch"
  std::vector<std::size_t> images;  ///< of a step, by size; the first is compared with none
};

/// What one step costs, as it was measured last.
struct StepCost {
  double image_seconds = 0;    ///< of a step, for each of its images
  double placing_seconds = 0;  ///< to compile a training and to fill its memory
  int warm_steps = 0;          ///< that are not timed, after that
};

/// What a tuning has to do still.
class WorkLeft {
 public:
  /// Ladders, then a test of learning rates of so many steps, none without it, on images that take
  /// so many seconds to decode.
  WorkLeft(std::vector<LadderLeft> ladders, std::optional<int> rounds)
      : ladders_(std::move(ladders)), rounds_(rounds) {
    for (const LadderLeft& ladder : ladders_) sizes_ += ladder.images.size();
  }
  WorkLeft& then_rates(int steps, std::size_t images_of_step, double decoding_seconds);

  void measured(const StepCost& cost) { cost_ = cost; }
  /// The next size of the first ladder is done; so is that ladder, whatever is left of it.
  void tried();
  void climbed();

  /// At the most, if no other work disturbs them; 0 where nothing is left.
  double most_seconds() const;

  /// "Tuning: up to 3 sizes of --micro-batch and 7 of --batch, then 100 steps with other learning
  /// rates: at most about 4 min, by the first steps, at 96 images/s; longer where other work
  /// disturbs them". The first ladder's first training is in memory.
  std::string plan_text() const;
  /// "[2/10] ": the place of the size that was tried last among all.
  std::string place_text() const;
  /// " - at most 3 min left"; empty where nothing is.
  std::string left_text() const;

 private:
  double ladder_seconds(const LadderLeft&, bool begun) const;
  double placing_seconds(std::size_t images) const;
  double round_seconds(std::size_t images) const;
  std::size_t sizes_left() const;

  std::vector<LadderLeft> ladders_;
  std::optional<int> rounds_;
  std::size_t sizes_ = 0;
  int rate_steps_ = 0;
  std::size_t rate_images_ = 0;  ///< of a step
  double decoding_seconds_ = 0;
  StepCost cost_{};
};

/// Rounded up: "40 s", "4 min", "1.5 h".
std::string most_text(double seconds);

}  // namespace cputrain::tune
