#include "cli/commands/predictions_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"
#include "system/output.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostInTable = 40;  // lines that a person reads
constexpr std::size_t kMostColumns = 10;  // predictions side by side
constexpr std::size_t kWidestName = 30;

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count); }

Json ratio(double part, double all) { return all > 0 ? Json(part / all) : Json(); }

std::string ratio_text(double part, double all) {
  return all > 0 ? fmt::format("{:.4f}", part / all) : "-";
}

}  // namespace

std::string predictions_table(const loop::PredictionCounts& counts,
                              const std::vector<std::string>& classes) {
  if (counts.classes() > kMostInTable) return "";
  std::size_t name_width = 5, column = 5;
  std::vector<std::string> names;
  for (const std::string& name : classes) {
    names.push_back(escaped(name));
    const std::size_t width = columns_of(names.back());
    name_width = std::clamp(width, name_width, kWidestName);
    column = std::clamp(width, column, std::size_t{12});
  }
  const bool with_predictions = counts.classes() <= kMostColumns;
  std::string text =
      fmt::format("{:<{}}{:>10}{:>10}{:>11}", "class", name_width, "images", "recall", "precision");
  if (with_predictions) text += "  predicted:";
  for (std::size_t c = 0; with_predictions && c < counts.classes(); ++c) {
    const std::size_t width = std::min(columns_of(names[c]), column);
    text += "  " + std::string(column - width, ' ') + in_columns(names[c], width);
  }
  text += '\n';
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    text +=
        fmt::format("{}{:>10}{:>10}{:>11}", in_columns(names[row], name_width),
                    whole(counts.actual(row)), ratio_text(counts.correct(row), counts.actual(row)),
                    ratio_text(counts.correct(row), counts.predicted(row)));
    if (with_predictions) text += "           ";
    for (std::size_t c = 0; with_predictions && c < counts.classes(); ++c) {
      text += fmt::format("  {:>{}}", whole(counts.cell(row, c)), column);
    }
    text += '\n';
  }
  return text;
}

std::string predicted_text(const std::vector<std::size_t>& by_class, std::size_t without,
                           const std::vector<std::string>& classes) {
  const std::size_t with = std::accumulate(by_class.begin(), by_class.end(), std::size_t{0});
  const std::size_t all = with + without;
  std::string text = with_commas(all) + " " + plural("image", static_cast<double>(all));
  if (without > 0) {
    text +=
        fmt::format(", {} without a prediction (named on standard error)", with_commas(without));
  }
  std::vector<std::size_t> shown(by_class.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > kMostInTable) {
    std::ranges::stable_sort(shown, std::ranges::greater{}, [&](auto c) { return by_class[c]; });
    shown.resize(kMostInTable);
    std::erase_if(shown, [&](std::size_t c) { return by_class[c] == 0; });
  }
  std::size_t width = 0, rest = with;
  for (const std::size_t c : shown) {
    width = std::clamp(columns_of(escaped(classes[c])), width, kWidestName);
  }
  text += with > 0 ? ":\n" : "\n";
  for (std::size_t i = 0; with > 0 && i < shown.size(); ++i) {
    const std::size_t c = shown[i];
    text += fmt::format("  {}{:>10}\n", in_columns(escaped(classes[c]), width),
                        with_commas(by_class[c]));
    rest -= by_class[c];
  }
  if (rest > 0) text += fmt::format("and {} of other classes\n", with_commas(rest));
  return text;
}

Json predictions_json(const loop::PredictionCounts& counts,
                      const std::vector<std::string>& classes) {
  Json by_class = Json::array(), matrix = Json::array();
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    by_class.push_back({{"name", classes[row]},
                        {"images", whole(counts.actual(row))},
                        {"accuracy", ratio(counts.correct(row), counts.actual(row))},
                        {"precision", ratio(counts.correct(row), counts.predicted(row))},
                        {"answers", whole(counts.predicted(row))}});
    Json line = Json::array();
    for (std::size_t c = 0; counts.has_matrix() && c < counts.classes(); ++c) {
      line.push_back(whole(counts.cell(row, c)));
    }
    if (counts.has_matrix()) matrix.push_back(std::move(line));
  }
  Json result;
  if (const auto top_five = counts.top_five()) result["top_5_accuracy"] = *top_five;
  result["not_numbers"] = whole(counts.undecided());
  result["classes"] = std::move(by_class);
  if (counts.has_matrix()) result["confusion"] = std::move(matrix);
  return result;
}

std::string confusion_csv(const loop::PredictionCounts& counts,
                          const std::vector<std::string>& classes) {
  std::vector<std::string> head{"actual\\answer"};
  head.insert(head.end(), classes.begin(), classes.end());
  head = csv_header(head);
  std::string text = join(head, ",") + "\r\n";
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    text += head[row + 1];
    for (std::size_t c = 0; c < counts.classes(); ++c) {
      text += fmt::format(",{}", whole(counts.cell(row, c)));
    }
    text += "\r\n";
  }
  return text;
}

PredictionTable::PredictionTable(const std::string& file, std::vector<std::string> classes)
    : classes_(std::move(classes)), prints_(file == "-") {
  if (!file.empty() && !prints_) file_ = system::open_given_file(file);
  std::vector<std::string> head{"file", "class"};
  head.insert(head.end(), classes_.begin(), classes_.end());
  write(csv_header(head));
}

void PredictionTable::add(const nlohmann::ordered_json& prediction) {
  const bool predicted = prediction.contains("class");
  const auto cell = [&](const char* key) { return csv_cell(prediction[key].get<std::string>()); };
  std::vector<std::string> cells{cell("file"), predicted ? cell("class") : ""};
  for (const std::string& name : classes_) {
    cells.push_back(predicted ? fmt::format("{}", prediction["probabilities"][name].get<float>())
                              : "");
  }
  write(cells);
}

void PredictionTable::write(const std::vector<std::string>& cells) {
  if (!file_ && !prints_) return;
  const std::string line = join(cells, ",") + "\r\n";
  if (file_) return file_->write(line);
  if (!system::put(stdout, line, system::Worth::result)) {
    fail(ExitCode::output, "cannot write to standard output (the result would be lost)");
  }
}

void PredictionTable::finish() {
  if (file_) file_->commit(system::Durability::disk);
}

}  // namespace cputrain::commands
