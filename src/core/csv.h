#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cputrain {

/// A cell of CSV (RFC 4180) for a text that may come from outside. It is one line of UTF-8, as
/// escaped() shows it, in quotes where it has commas or quotes. A text that a spreadsheet would
/// take for a formula has an apostrophe in front; numbers stay numbers.
std::string csv_cell(std::string_view text);

/// Cells of a header, each another: a name that is taken gets " (2)" behind it, or a later number.
/// The first of equal names keeps it.
std::vector<std::string> csv_header(std::span<const std::string> names);

}  // namespace cputrain
