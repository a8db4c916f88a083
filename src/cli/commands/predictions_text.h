#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "loop/evaluate.h"
#include "system/files.h"

/// Predictions as people and programs read them. `classes` are the names, by label.
namespace cputrain::commands {

inline constexpr std::size_t kMostInTable = 40;  ///< lines that a person reads
inline constexpr std::size_t kWidestName = 30;

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
