#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "loop/evaluate.h"
#include "system/files.h"

/// Counts of predictions as people and programs read them. `classes` are the names, by label.
namespace cputrain::commands {

/// A line a class: its images, how many of them were predicted rightly, how often that prediction
/// is right, and, for a few classes, how often each prediction was given. Empty for many classes.
std::string predictions_table(const loop::PredictionCounts&,
                              const std::vector<std::string>& classes);

/// How many images have no prediction, and how many have which class: a line a class, of many
/// classes the most frequent ones. `by_class`: by label.
std::string predicted_text(const std::vector<std::size_t>& by_class, std::size_t without,
                           const std::vector<std::string>& classes);

/// {"top_5_accuracy":..., "classes":[{"name":..., "images":..., "accuracy":..., "precision":...,
/// "answers":...}], "confusion":[[...]]}; null where nothing was counted, and no top_5_accuracy of
/// five classes or fewer.
nlohmann::ordered_json predictions_json(const loop::PredictionCounts&,
                                        const std::vector<std::string>& classes);

/// The matrix as CSV: a row an actual class, a column a prediction; needs has_matrix().
std::string confusion_csv(const loop::PredictionCounts&, const std::vector<std::string>& classes);

/// Predictions of `predict` as CSV, written as they come: file, class, and a column per class with
/// its probability; a class called "file" or "class" has the column "file (2)" or "class (2)". A
/// file without a prediction has empty cells behind its name.
class PredictionTable {
 public:
  /// `file`: empty for none, "-" for standard output. Error(output).
  PredictionTable(const std::string& file, std::vector<std::string> classes);

  /// {"file":..., "class":..., "probabilities":{...}}, or {"file":..., "error":...}.
  void add(const nlohmann::ordered_json& prediction);
  /// The file is there when this returns.
  void finish();

 private:
  void write(const std::vector<std::string>& cells);

  std::vector<std::string> classes_;
  std::unique_ptr<system::OutputFile> file_;
  bool prints_;
};

}  // namespace cputrain::commands
