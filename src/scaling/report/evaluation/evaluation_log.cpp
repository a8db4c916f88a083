#include "scaling/report/evaluation/evaluation_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/files.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

constexpr system::BoundedLines::Limits kLogLimits{16 << 20, 1 << 16};
constexpr std::size_t kMostEvaluations = 100;  // by one run in a report

/// Whether what is there ends amid a line, which a line after it would be lost with.
bool is_cut_off(const fs::path& path) {
  try {
    const system::RegularFile file(path);
    std::byte last{'\n'};
    if (file.size() > 0) file.read_at(file.size() - 1, std::span(&last, 1));
    return last != std::byte{'\n'};
  } catch (const std::runtime_error&) {
    return false;  // no file yet, or none that is gone on with
  }
}

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
  const std::string begin = is_cut_off(file) ? "\n" : "";
  system::LineFile(file, system::Begin::append).write_line(begin + json_text(line));
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
