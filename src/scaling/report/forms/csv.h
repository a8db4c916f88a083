#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cputrain::report {

/// A column of a CSV file: its name, and the path of its values in the objects of the JSON file
/// beside it, "/best/epoch"; without a path, the key that has its name.
struct CsvColumn {
  std::string name, path{};
};

/// Text of a line of names and a line for every object (RFC 4180: commas, CRLF). What is null or
/// missing is empty, true is 1, and texts of a list stand in one field.
class Csv {
 public:
  explicit Csv(const std::vector<CsvColumn>&);
  void add(const nlohmann::ordered_json& row);
  const std::string& text() const { return text_; }

 private:
  std::vector<nlohmann::ordered_json::json_pointer> paths_;
  std::string text_;
};

}  // namespace cputrain::report
