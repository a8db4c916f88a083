#include "report/evaluation/evaluation_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_text.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "report/trainings/json_figures.h"
#include "system/bounded_file.h"
#include "system/files.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

constexpr system::BoundedLines::Limits kLogLimits{16 << 20, 1 << 16};

/// As it is called in the run's folder, which may move.
std::string weights_name(const fs::path& run, const std::string& weights) {
  std::error_code error;
  const fs::path name = fs::relative(weights, run, error);
  return error || name.empty() ? weights : name.string();
}

std::optional<RunEvaluation> evaluation_of(const std::string& text) {
  nlohmann::json line;
  try {
    line = parse_strict_json(text);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  if (!line.is_object()) return std::nullopt;
  const auto images = figure_of(line, "images", 1);
  if (!images) return std::nullopt;
  RunEvaluation evaluation{value_text(line, "weights"), value_text(line, "data"),
                           value_text(line, "part"),    value_text(line, "doubt"),
                           value_text(line, "date"),    value_text(line, "build"),
                           value_text(line, "command"), *images};
  evaluation.loss = figure_of(line, "loss", -kMost);
  evaluation.accuracy = figure_of(line, "accuracy", 0, 1);
  return evaluation;
}

bool replaces(const RunEvaluation& later, const RunEvaluation& earlier) {
  return later.weights == earlier.weights && later.data == earlier.data &&
         later.part == earlier.part;
}

}  // namespace

void log_evaluation(const fs::path& file, const EvaluationFacts& facts) {
  const nlohmann::ordered_json line{{"date", facts.date},
                                    {"weights", weights_name(file.parent_path(), facts.weights)},
                                    {"data", facts.data},
                                    {"part", facts.part},
                                    {"images", static_cast<std::uint64_t>(facts.images)},
                                    {"loss", facts.loss},
                                    {"accuracy", known(facts.accuracy)},
                                    {"doubt", facts.doubt},
                                    {"build", facts.build},
                                    {"command", facts.command}};
  system::LineFile(file, system::Begin::append).write_line(json_text(line));
}

std::vector<RunEvaluation> read_evaluations(const fs::path& file,
                                            std::vector<std::string>& troubles) {
  std::vector<RunEvaluation> evaluations;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return evaluations;
  std::size_t faults = 0;
  try {
    system::BoundedLines lines(file, kLogLimits);
    while (const auto line = lines.next()) {
      auto evaluation = evaluation_of(*line);
      if (!evaluation) {
        ++faults;
        continue;
      }
      std::erase_if(evaluations,
                    [&](const RunEvaluation& earlier) { return replaces(*evaluation, earlier); });
      evaluations.push_back(std::move(*evaluation));
    }
  } catch (const std::runtime_error& problem) {
    troubles.push_back(fmt::format("{}: {}", file.filename().string(), printable(problem.what())));
  }
  if (faults > 0) {
    troubles.push_back(fmt::format("{}: {} line{} cannot be read (the others count)",
                                   file.filename().string(), faults, faults == 1 ? "" : "s"));
  }
  std::ranges::reverse(evaluations);
  return evaluations;
}

}  // namespace cputrain::report
