#include "cli/commands/predictions_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"
#include "system/output.h"

namespace cputrain::commands {

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
