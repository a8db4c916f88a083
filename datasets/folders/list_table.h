#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cputrain::datasets {

struct ListRow {
  std::size_t line = 0;             ///< of the file, from 1
  std::vector<std::string> fields;  ///< without blanks around them
};

/// The rows of a list file's text: fields separated by tabs, in .csv files by commas or semicolons
/// where the first row has no tab, with quotes as in RFC 4180. Empty lines are skipped, and
/// above the first row comments: lines that begin with '#' and not with the name of an image. All
/// rows have as many fields as the first. Error(data) naming file and line,
/// and for UTF-16.
std::vector<ListRow> read_table(std::string_view text, const std::string& path);

}  // namespace cputrain::datasets
