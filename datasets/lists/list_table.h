#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "datasets/lists/text_pieces.h"

namespace cputrain::datasets {

struct ListRow {
  std::size_t line = 0;             ///< in the file, from 1
  std::vector<std::string> fields;  ///< without blanks around them
};

/// What a list may hold in one piece: no row of one takes more memory than a few MiB.
constexpr std::size_t kMaxCellBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxRowBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxColumns = 10'000;

/// Gives the rows of a list file's text, one after the other: fields separated by tabs, in .csv
/// files by commas or semicolons where the first row has no tab, with quotes as in RFC 4180. Empty
/// lines are skipped, and above the first row comments: lines that begin with '#' and not with the
/// name of an image. All rows have as many fields as the first. Error(data) naming file and line,
/// for rows that are too large, and for UTF-16.
void read_table(const TextPieces&, const std::string& path,
                const std::function<void(const ListRow&)>& take);

/// Letters and digits of a column's name, in lower case: "File Name" and "file_name" are one.
std::string plain_header(std::string_view name);

}  // namespace cputrain::datasets
