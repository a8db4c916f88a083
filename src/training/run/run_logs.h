#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "logging/reporters.h"
#include "loop/evaluate.h"
#include "training/training.h"

namespace cputrain::training {

/// All reporters of a training that is loaded: the terminal, the files of its folder, and the logs
/// that --log-format asks for. Silence on ranks other than 0. `place`: where the files of a
/// training that goes on were cut. Files are written by the queue.
std::unique_ptr<logging::RunReporter> make_reporter(const Training&,
                                                    const std::filesystem::path& folder,
                                                    const logging::LogPlace& place,
                                                    system::WriteQueue& logs);

// Where a checkpoint leaves the logs of a run, and a resume takes them up.

/// How long the logs of a run are now, which only ever grow: {"metrics.jsonl": 1234, ...}, in
/// bytes, those of sub-folders (TensorBoard's) as "train/events...". A checkpoint keeps it.
nlohmann::ordered_json log_marks(const std::filesystem::path& run);

/// Cuts the logs of a run where a checkpoint left them, each in one call of the system, and removes
/// logs that were begun after it. What is left has nothing about later steps; what it has about
/// earlier ones is as it was. May be interrupted and done again. Returns what users should know:
/// logs that are shorter than they were; they end with a whole line then. Marks are a file's words:
/// Error(data) where they name anything but such logs, and then nothing is cut. Error(output).
std::vector<std::string> cut_logs(const std::filesystem::path& run,
                                  const nlohmann::ordered_json& marks);

/// Whether marks are such as log_marks() makes. Error(data).
void check_marks(const nlohmann::ordered_json& marks);

/// Puts what was written of the logs so far on disk: a checkpoint that survives a power cut must
/// find the lines of its steps. Error(output).
void sync_logs(const std::filesystem::path& run);

// One evaluation of weights, as a page shows it and as a run's folder keeps it.

/// An image whose prediction was wrong.
struct WrongImage {
  data::Thumbnail picture;
  std::string name;  ///< its file's
  std::string truth, prediction;
  double probability = 0, probability_of_truth = 0;
};

/// What an evaluation came to. Names may be hostile. What a run's folder keeps of it is what a line
/// can hold: no classes, matrix or images.
struct EvaluationFacts {
  std::string model{}, weights{}, data{}, part{}, cpu{}, backend{}, date{}, build{}, command{};
  int cores = 0;        ///< the machine's
  std::string looks{};  ///< the word of --tta; empty where an image is looked at as it is
  std::string doubt{};  ///< why training may have learnt from these images; or empty
  double images = 0, correct = 0, loss = 0;
  double penalty = 0;    ///< L2, of all weights; no part of the loss
  double undecided = 0;  ///< images whose predictions were NaN
  std::optional<double> accuracy{}, among_five{};
  std::vector<loop::ClassCounts> classes{};  ///< with their names
  std::optional<loop::MacroAverages> macro{};
  std::optional<double> auc{};  ///< of two classes
  /// A row an actual class, a column a prediction; empty where classes are too many for it.
  std::vector<std::vector<double>> matrix{};
  std::vector<WrongImage> surest_errors{};  ///< the surest first

  std::optional<double> finite_loss() const {
    return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
  }
};

/// Images that a page shows at most, and the pixels of their longer sides.
inline constexpr std::size_t kMostErrors = 24;
inline constexpr int kLongestSide = 128;

/// Adds a line of JSON; what is there stays. Error(output).
void log_evaluation(const std::filesystem::path& file, const EvaluationFacts&);

}  // namespace cputrain::training
