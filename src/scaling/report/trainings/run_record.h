#pragma once

#include <cstddef>
#include <cstdint>

#include "core/budget.h"
#include "runfiles/lost_seconds.h"
#include "scaling/cells/run_figures.h"
#include "training/run/run_logs.h"

namespace cputrain::report {

/// How a training ended, as far as its folder tells.
enum class Outcome {
  finished,
  reached_target,  ///< --target-accuracy
  stopped_early,   ///< --early-stopping
  interrupted,     ///< by a signal, after saving
  not_a_number,    ///< the loss of a step or of an epoch
  running,         ///< a process has the lock of the folder
  no_end,          ///< no summary: it was killed, or failed
  no_figures       ///< no line of metrics.jsonl says anything
};

/// The epoch with the highest accuracy of validation, the first of several.
struct BestAccuracy {
  int epoch = 0;
  double accuracy = 0;
  std::optional<double> seconds{};  ///< training until its end; nothing where epochs are missing
};

/// One run folder. What is not known is empty.
struct RunRecord {
  std::filesystem::path folder;
  std::string name;  ///< the folder's, and of those above it where runs need that; may be hostile
  std::string started;  ///< "2026-11-25T22:40:39+0000"
  std::string model, data, backend, precision;
  std::string rule;  ///< the optimizer's, with its learning rate: "sgd 0.01, momentum 0.9"
  std::string machine;
  std::string build;    ///< "cputrain 1.2, commit abc1234, Release"
  std::string command;  ///< with the flags that were typed
  std::optional<int> ranks{}, threads{}, image_size{};
  cells::RunDevices devices;
  std::optional<std::int64_t> batch{}, seed{};
  std::optional<int> planned_epochs{};  ///< nothing where --steps ends the training
  std::optional<double> target{};       ///< --target-accuracy
  /// All flags that change weights or times, but the seed, and the machine.
  std::map<std::string, std::string> configuration;
  /// The seed, and facts of a training that ended: its network, its images and weights by hash.
  std::map<std::string, std::string> made_of;

  std::vector<runfiles::EpochLine> epochs;  ///< ascending
  Outcome outcome = Outcome::no_figures;
  std::string where;                          ///< where a loss was not finite: "step 7"
  int resumed = 0;                            ///< how often it went on from a checkpoint
  std::optional<std::uint64_t> checkpoint{};  ///< step of the newest one
  std::optional<double> seconds{};            ///< training and evaluation, as the summary says
  /// Whose weights weights.safetensors and best.safetensors have, where that is known.
  std::optional<int> weights_epoch{}, best_epoch{};
  std::vector<training::EvaluationFacts> evaluations;  ///< what eval found, the newest first
  runfiles::LostSeconds lost;                          ///< times without computing
  std::vector<std::string> troubles;  ///< what of its files could not be read, and why

  /// It was stopped, was killed or failed, and may go on.
  bool is_unfinished() const {
    return outcome == Outcome::interrupted || outcome == Outcome::no_end ||
           outcome == Outcome::no_figures;
  }
  std::optional<BestAccuracy> best() const;
  /// The first epoch that validated at least so well.
  std::optional<BestAccuracy> first_with(double accuracy) const;
  /// The loss of the last epoch that validated: one that was stopped midway did not.
  std::optional<double> val_loss() const;
  /// Training until the end of an epoch; nothing where a line before it is missing.
  std::optional<double> seconds_until(int epoch) const;
  /// As the summary has them; without one the sum of all epochs that ended.
  std::optional<double> total_seconds() const;
  /// In epochs that went through the whole network: the median of those without the first and
  /// without those that tried algorithms; where there is no such epoch, of what there is.
  std::optional<double> images_per_second() const;
  /// The median of epochs that took what frozen layers make of images from memory, which is no
  /// speed of the network; nothing where none did.
  std::optional<double> seconds_from_features() const;
  bool includes_trials() const;
  /// That accuracies of validation are of.
  std::optional<std::uint64_t> validation_images() const;
  /// Where the time of all epochs went whose lines say it: their seconds, budget, and what was
  /// taken, as means over the seconds. Nothing else of such a line.
  runfiles::EpochLine time() const;
};

/// Whether a training left files there: metrics.jsonl, or config.json and environment.json.
bool is_run_folder(const std::filesystem::path&);

/// Reads a run folder whose files may be hostile, cut off or missing: `troubles` says what is.
RunRecord read_run(const std::filesystem::path& folder);

/// Evaluations that a run's folder keeps (training/run/run_logs.h). The newest first, at most
/// 100, and of one file of weights on one part of one data set the newest alone. Where the file may
/// be hostile or cut off, `troubles` says so. None where there is no file.
std::vector<training::EvaluationFacts> read_evaluations(const std::filesystem::path& file,
                                                        std::vector<std::string>& troubles);

/// Loss and accuracy of a run's steps, as metrics.jsonl has them.
struct Curve {
  std::vector<double> images, loss, accuracy;  ///< images seen until then; accuracy as a part of 1
  /// Seconds of training until then; empty where a line lacks them. Steps without a line count as
  /// much as the next one that has a line.
  std::vector<double> seconds{};
};

/// By the step lines of a run's metrics (runfiles/metrics.h). At most `most` points remain, evenly
/// spread. Empty where there is no file, or none of a size that is read.
///
/// Images seen are those that the step lines have; without them, a step's images times the steps
/// since the line before.
Curve read_curve(const std::filesystem::path& metrics, std::size_t most = 300);

/// To five digits, which are more than a plot shows.
double rounded(double value);

}  // namespace cputrain::report
