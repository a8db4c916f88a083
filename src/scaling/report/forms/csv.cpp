#include "scaling/report/forms/csv.h"

#include <fmt/format.h>

#include "core/csv.h"
#include "core/text.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;

std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_string()) return csv_cell(value.get<std::string>());
  if (value.is_array()) return csv_cell(join(value.get<std::vector<std::string>>(), "; "));
  // The shortest text that reads back as the same number.
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace

Csv::Csv(const std::vector<CsvColumn>& columns) {
  for (const auto& [name, path] : columns) {
    paths_.emplace_back(path.empty() ? "/" + name : path);
    text_ += (paths_.size() > 1 ? "," : "") + name;
  }
  text_ += "\r\n";
}

void Csv::add(const Json& row) {
  for (const Json::json_pointer& path : paths_) {
    if (&path != &paths_.front()) text_ += ',';
    if (row.contains(path)) text_ += field(row.at(path));
  }
  text_ += "\r\n";
}

}  // namespace cputrain::report
