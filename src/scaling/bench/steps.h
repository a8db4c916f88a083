#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compute/layer_time.h"
#include "core/statistics/calm_rounds.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "training/single_steps.h"
#include "training/training.h"

/// Timing of single training steps, for `bench step`.
namespace cputrain::bench {

/// A training of which single steps are timed. The update is computed and weights stay as they are:
/// speed depends on how many activations are zero, and that changes in a few steps on one batch.
/// As in training, a step waits for the sums of the one before, so that a device always has one to
/// compute: its time is then that of the one before.
class StepTrial {
 public:
  StepTrial(const training::Session&, training::TrainingPlan,
            std::shared_ptr<const data::DataSource>, std::shared_ptr<const data::DecodedData>);

  /// Steps that do not count: until the program has found its algorithms, and one more, whose
  /// seconds it returns. Of long ones the last that tried some is warm by its end, and stands for
  /// that. Collective.
  double warm_up();
  /// Whether a step that takes so long is a long one of CPUs: its many passes are a warm-up and a
  /// measurement of their own.
  bool is_long(double seconds) const;
  /// A step that is timed. It ends for all ranks together.
  void measure();
  /// Seconds that layers take in so many further steps, which a device makes more slowly. None is
  /// on its way afterwards.
  std::vector<compute::LayerTime> measure_layers(int steps);
  /// The same in the steps that this makes.
  std::vector<compute::LayerTime> layers_in(const std::function<void()>& steps);
  /// By step, those that were timed.
  const std::vector<double>& images_per_second() const { return rates_; }
  int steps() const { return steps_.made(); }  ///< timed or not
  /// CPU time of this rank's threads in each of them.
  const std::vector<double>& cpu_seconds() const { return cpu_seconds_; }
  const model::Graph& graph() const { return training_.plan().graph; }
  const data::BatchPlan& plan() const { return training_.batches().train; }
  const training::CompiledTraining& compiled() const { return training_.compiled(); }
  const compute::Program& program() const { return *compiled().program; }

 private:
  /// How long it took.
  double step();
  /// Whether a rank's program has algorithms left to try. Collective.
  bool still_trying() const;

  training::Training training_;
  training::SingleSteps steps_{training_};
  std::vector<double> rates_, cpu_seconds_;
};

/// What rounds of a step of each trial came to.
struct StepFigures {
  compute::Limits limits;
  CalmRounds rounds;
  int steps;                              ///< for each trial in a round
  std::vector<Spread> images_per_second;  ///< by trial, from rounds that count
  int layer_steps;  ///< steps of the first trial: further ones, or its long ones
  std::vector<compute::LayerTime> layers;  ///< what they took there
  std::optional<double> cpu_wait;          ///< system/lost_time.h: the rank's that waited most
};

/// What a refusal says first, without its reason and advice.
std::string first_clause(const std::string& message);

/// All trials in turn, so that a disturbance of the machine meets them alike, between two
/// measurements of its limits. `wanted` steps of each, else as many as fill some seconds, in rounds
/// that are long enough to see stolen time. Layers are timed afterwards, in a third as many steps,
/// so that steps are those of training; of long steps in the same ones, where it takes a part of
/// them too small to see. Trials on a device must be alone: their steps overlap. Collective.
StepFigures run_trials(const training::Session&, const std::vector<std::unique_ptr<StepTrial>>&,
                       std::optional<int> wanted);

/// Width of the first column of a table of layers: that of the longest `name` of the rows, and
/// two blanks behind it, but at least so wide.
std::size_t name_width(const auto& rows, std::size_t least) {
  for (const auto& row : rows) least = std::max(least, columns_of(escaped(row.name)) + 2);
  return least;
}

}  // namespace cputrain::bench
