#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Text that may come from a hostile file, made safe for a format. Control characters (line ends,
/// too) and signs that turn the direction of text become spaces everywhere. And files of CSV.
namespace cputrain::report {

/// Inside of HTML elements and of attributes in double quotes.
std::string html_escape(std::string_view);
/// JSON as the content of a <script> element: no '<', '>' or '&' is left.
std::string script_json(std::string_view json);
/// Between the bars of a table in GitHub's Markdown, or in a paragraph.
std::string markdown_escape(std::string_view);
/// In LaTeX' text. Characters beyond ASCII become '?', but for a few signs that have a command.
std::string latex_escape(std::string_view);
/// Each of the texts, made safe, between these two.
std::string each_between(const std::vector<std::string>& texts,
                         std::string (*escape)(std::string_view), std::string_view before,
                         std::string_view behind);
/// Bytes as text (RFC 4648), for the address of an image that lies in a page.
std::string base64(std::string_view bytes);

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
