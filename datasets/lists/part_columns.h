#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "datasets/folders/folder_names.h"
#include "datasets/lists/list_table.h"

namespace cputrain::datasets {

/// Columns of a list that may name the part of each row. They are looked at row by row; a column's
/// values are kept only as long as all of them name parts.
class PartColumns {
 public:
  struct Column {
    std::string header;
    std::vector<Part> parts;  ///< one a row
  };

  /// For a list without a header, which has none.
  PartColumns() = default;
  /// All columns but those of the path and the label.
  PartColumns(const ListRow& header, std::size_t path, std::size_t label);

  void take(const ListRow& row);

  /// The column that names the part, if there is one. With a header that means so, words beside
  /// that of the part do no harm: "PublicTest". Error(data) with two such columns, and with one
  /// that names the part of some rows only, or by yes and no: all rows would train.
  std::optional<Column> finish(const std::string& list);

 private:
  struct Watched {
    std::size_t place;
    std::string header;
    bool named;  ///< the header is a word for parts
    bool yes_or_no = true;
    std::set<Part> found{};
    std::set<std::string> answers{};                             ///< yes, no, 0, 1, ...
    std::optional<std::pair<std::size_t, std::string>> other{};  ///< line and value: names no part
    std::vector<Part> parts{};
  };

  static void take(Watched&, std::size_t line, const std::string& value);
  static bool says_parts(const Watched&, const std::string& list);

  std::size_t line_ = 0;  ///< the header's
  std::vector<Watched> columns_;
};

}  // namespace cputrain::datasets
