#include "cli/commands/prediction_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands/predictions_text.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::commands {

PredictionTable::PredictionTable(const std::string& file, std::vector<std::string> classes)
    : classes_(std::move(classes)),
      prints_(file == "-"),
      to_terminal_(prints_ && isatty(STDOUT_FILENO) == 1) {
  if (!file.empty() && !prints_) file_ = system::open_given_file(file);
  std::vector<std::string> head{"file", "class"};
  head.insert(head.end(), classes_.begin(), classes_.end());
  write(head);
}

void PredictionTable::add(const nlohmann::ordered_json& prediction) {
  const bool predicted = prediction.contains("class");
  std::vector<std::string> fields{prediction["file"], predicted ? prediction["class"] : ""};
  for (const std::string& name : classes_) {
    fields.push_back(predicted ? fmt::format("{}", prediction["probabilities"][name].get<float>())
                               : "");
  }
  write(fields);
}

void PredictionTable::write(const std::vector<std::string>& fields) {
  if (!file_ && !prints_) return;
  std::string line;
  for (const std::string& field : fields) {
    const bool plain = is_utf8(field) && !to_terminal_;
    line += csv_field(plain ? field : escaped(field)) + ",";
  }
  line.replace(line.size() - 1, 1, "\r\n");
  if (file_) return file_->write(line);
  if (std::fputs(line.c_str(), stdout) < 0) {
    fail(ExitCode::output, "cannot write to standard output (the result would be lost)");
  }
}

void PredictionTable::finish() {
  if (file_) file_->commit(system::Durability::disk);
}

}  // namespace cputrain::commands
