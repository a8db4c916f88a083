#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/text.h"

namespace cputrain::bench {

/// The first column of a table of layers: as wide as the longest name, and two blanks behind it.
class NameColumn {
 public:
  /// `rows` have a `name` each; the column is at least so wide.
  NameColumn(const auto& rows, std::size_t least) : width_(least) {
    for (const auto& row : rows) width_ = std::max(width_, columns_of(escaped(row.name)) + 2);
  }

  std::size_t width() const { return width_; }
  std::string operator()(std::string_view name) const { return in_columns(escaped(name), width_); }

 private:
  std::size_t width_;
};

}  // namespace cputrain::bench
