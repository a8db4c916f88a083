#include "scaling/report/evaluation/evaluation_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

constexpr system::BoundedLines::Limits kLogLimits{16 << 20, 1 << 16};
constexpr std::size_t kMostEvaluations = 100;  // by one run in a report

std::optional<RunEvaluation> evaluation_of(const std::string& text) {
  nlohmann::json line;
  try {
    line = parse_strict_json(text);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  if (!line.is_object()) return std::nullopt;
  const auto images = whole_in(line, "images", 1, kMostCounted);
  if (!images) return std::nullopt;
  RunEvaluation evaluation{text_in(line, "weights"), text_in(line, "data"),
                           text_in(line, "part"),    text_in(line, "doubt"),
                           text_in(line, "date"),    text_in(line, "build"),
                           text_in(line, "command"), *images};
  evaluation.loss = number_in(line, "loss", -kMostCounted);
  evaluation.accuracy = number_in(line, "accuracy", 0, 1);
  return evaluation;
}

bool replaces(const RunEvaluation& later, const RunEvaluation& earlier) {
  return later.weights == earlier.weights && later.data == earlier.data &&
         later.part == earlier.part;
}

/// The newest first.
std::vector<RunEvaluation> newest_of_each(const std::vector<RunEvaluation>& all) {
  std::vector<RunEvaluation> newest;
  for (auto one = all.rbegin(); one != all.rend() && newest.size() < kMostEvaluations; ++one) {
    const auto is_replaced = [&](const RunEvaluation& later) { return replaces(later, *one); };
    if (std::ranges::none_of(newest, is_replaced)) newest.push_back(*one);
  }
  return newest;
}

}  // namespace

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
      evaluations.push_back(std::move(*evaluation));
    }
  } catch (const std::runtime_error& problem) {
    troubles.push_back(fmt::format("{}: {}", file.filename().string(), printable(problem.what())));
  }
  if (faults > 0) {
    troubles.push_back(fmt::format("{}: {} line{} cannot be read (the others count)",
                                   file.filename().string(), faults, faults == 1 ? "" : "s"));
  }
  return newest_of_each(evaluations);
}

}  // namespace cputrain::report
