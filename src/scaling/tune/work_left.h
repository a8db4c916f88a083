#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
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
  std::vector<std::size_t> images;  ///< per step, by size; the first is compared with none
  /// Images per step with the size that a training has without the flag, where it is none of them.
  std::optional<std::size_t> usual{};

  std::size_t sizes() const { return images.size() + (usual ? 1 : 0); }
};

/// A test of learning rates, behind the ladders.
struct RatesLeft {
  int steps = 0;                  ///< 0: there is none
  std::size_t likely_images = 0;  ///< per step
  std::size_t most_images = 0;    ///< per step, with the largest batch
  std::size_t there = 0;          ///< images to draw from
  double kept_features = 0;       ///< part of what frozen layers make that is kept
  double decoding_seconds = 0;    ///< per image
};

/// How many of so many images, or steps, compute all layers, where those beyond the first `there`
/// are met again and such a part of what frozen layers make of them is kept.
double computed(double all, double there, double kept_features);

/// What one step costs, as it was measured last.
struct StepCost {
  double image_seconds = 0;    ///< computing a step, per image
  double placing_seconds = 0;  ///< to compile a training and to fill its memory
  int warm_steps = 0;          ///< that are not timed, after that
};

/// What a tuning has to do still.
class WorkLeft {
 public:
  WorkLeft(std::vector<LadderLeft> ladders, std::optional<int> rounds, RatesLeft rates = {})
      : ladders_(std::move(ladders)), rounds_(rounds), rates_(rates) {}

  void measured(const StepCost& cost) { cost_ = cost; }
  /// By rounds, which tell more than the step that a size was warmed up with.
  void measured(double image_seconds) { cost_.image_seconds = image_seconds; }
  /// One more size of the first ladder is done, which paid or did not; the first size pays.
  void tried(bool paid);
  /// What is left of the first ladder is a comparison with the usual size.
  void only_usual() { ended_ = true; }
  /// The first ladder is done.
  void climbed();

  /// If two sizes of a ladder pay, and behind one that paid one more, before it ends; with half of
  /// the rounds that contests may have further. 0 where nothing is left.
  double likely_seconds() const;
  /// If all sizes are tried with all rounds, and no other work disturbs them.
  double most_seconds() const;

  /// "Tuning: up to 3 sizes of --micro-batch, then up to 7 sizes of --batch: about 3 min, by the
  /// first steps; the line of each size says what is left". At most how long is said, too, where
  /// that is near. The first ladder's first training is in memory.
  std::string plan_text() const;
  /// "[2 of up to 5] ": the place of the size that was tried last in its ladder.
  std::string place_text() const;
  /// " - about 3 min left"; empty where nothing is.
  std::string left_text() const;

 private:
  struct Guess {
    bool most;      ///< all sizes, the largest batch
    double rounds;  ///< times as many as contests begin with
  };
  double seconds(const Guess&) const;
  double ladder_seconds(const LadderLeft&, bool begun, const Guess&) const;
  double contest_seconds(std::size_t images, std::size_t other, const Guess&) const;
  double placing_seconds(std::size_t images) const;
  double round_seconds(std::size_t images) const;
  std::size_t contests_left(const LadderLeft&, bool begun, bool most) const;

  std::vector<LadderLeft> ladders_;
  std::optional<int> rounds_;
  RatesLeft rates_;
  StepCost cost_{};
  // Where the first ladder is:
  std::size_t tried_ = 0;  ///< sizes
  int in_vain_ = 0;        ///< that did not pay, one after another
  bool ended_ = false, usual_done_ = false;
};

/// Rounded: "40 s", "4 min", "1.5 h".
std::string about_text(double seconds);
/// Rounded up.
std::string most_text(double seconds);

}  // namespace cputrain::tune
