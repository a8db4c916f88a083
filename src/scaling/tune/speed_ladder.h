#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scaling/tune/ladder.h"
#include "training/plan/training_plan.h"
#include "training/session/session.h"

/// Images/s and memory of training steps by one size: micro-batch or batch; and how long what is
/// left of a tuning takes, from what its steps have taken so far.
namespace cputrain::tune {

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

/// What a tuning has to do still.
class WorkLeft {
 public:
  WorkLeft(std::vector<LadderLeft> ladders, std::optional<int> rounds, RatesLeft rates = {})
      : ladders_(std::move(ladders)), rounds_(rounds), rates_(rates) {}

  /// A size was placed and warmed up.
  void measured(double image_seconds, double placing_seconds, int warm_steps) {
    image_seconds_ = image_seconds;
    placing_seconds_ = placing_seconds;
    warm_steps_ = warm_steps;
  }
  /// By rounds, which tell more than the step that a size was warmed up with.
  void measured(double image_seconds) { image_seconds_ = image_seconds; }
  /// One more size of the first ladder is done, which paid or did not; the first size pays.
  void tried(bool paid) {
    ++tried_;
    usual_done_ = ended_;
    in_vain_ = paid ? 0 : in_vain_ + 1;
  }
  /// What is left of the first ladder is a comparison with the usual size.
  void only_usual() { ended_ = true; }
  /// The first ladder is done.
  void climbed();

  /// If two sizes of a ladder pay, and behind one that paid one more, before it ends; with half of
  /// the rounds that contests may have further. 0 where nothing is left.
  double likely_seconds() const { return seconds(false); }
  /// If all sizes are tried with all rounds, and no other work disturbs them.
  double most_seconds() const { return seconds(true); }

  /// "Tuning: up to 3 sizes of --micro-batch, then up to 7 sizes of --batch: about 3 min, by the
  /// first steps; the line of each size says what is left". At most how long is said, too, where
  /// that is near. The first ladder's first training is in memory.
  std::string plan_text() const;
  /// "[2 of up to 5] ": the place of the size that was tried last in its ladder.
  std::string place_text() const;
  /// " - about 3 min left"; empty where nothing is.
  std::string left_text() const;

 private:
  double seconds(bool most) const;  ///< all sizes and rounds, with the largest batch
  double ladder_seconds(const LadderLeft&, bool begun, bool most) const;
  double contest_seconds(std::size_t images, std::size_t other, bool most) const;
  double placing_seconds(std::size_t images) const;
  double round_seconds(std::size_t images) const;
  std::size_t contests_left(const LadderLeft&, bool begun, bool most) const;

  std::vector<LadderLeft> ladders_;
  std::optional<int> rounds_;
  RatesLeft rates_;
  // What one step costs, as it was measured last.
  double image_seconds_ = 0;    ///< computing a step, per image
  double placing_seconds_ = 0;  ///< to compile a training and to fill its memory
  int warm_steps_ = 0;          ///< that are not timed, after that
  // Where the first ladder is:
  std::size_t tried_ = 0;  ///< sizes
  int in_vain_ = 0;        ///< that did not pay, one after another
  bool ended_ = false, usual_done_ = false;
};

/// Silent while it lives: each training would say what its exchange is. Warnings are still told.
class Silence {
 public:
  explicit Silence(training::Session& session)
      : session_(session), before_(std::exchange(session.quiet, true)) {}
  ~Silence() { session_.quiet = before_; }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  training::Session& session_;
  bool before_;
};

/// What steps are made of; all borrowed but the data.
struct StepBench {
  training::Session& session;
  int classes;
  std::shared_ptr<const data::DataSource> source;
  std::shared_ptr<const data::DecodedData> data;
  /// By this process, and its part, before images were decoded; and what a training leaves.
  system::HeldMemory held_before;
  std::optional<int> rounds;  ///< per contest; else as many as fill some seconds
  WorkLeft left{{}, {}};      ///< its first ladder is the next that is measured
  bool told = false;          ///< how long it takes
};

/// Makes the training with a size.
using SpecOf = std::function<training::TrainingSpec(int value)>;

/// What this process holds at most from now on counts; now that is what it has.
system::HeldMemory begin_peak();

/// Climbs the ladder, of which flag, usual and larger_alone are known, by these sizes, which
/// ascend; there is at least one. The best size so far and the next one are in memory at once and
/// take turns in short rounds. The best is compared with the usual size, too, where advice depends
/// on it. Steps compute all layers: what frozen ones make of images is not kept. A line on standard
/// error for each size, and before the first one how long all is likely to take. Error(usage) where
/// the first has no room. Collective; the same on all ranks.
Ladder measure_ladder(StepBench&, Ladder known, const std::vector<int>& rungs, const SpecOf&);

}  // namespace cputrain::tune
