#include "cli/commands/predictions_text.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"
#include "system/output.h"

namespace cputrain::commands {

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
