#include "datasets/lists/list_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/folder_names.h"
#include "datasets/lists/list_table.h"
#include "datasets/lists/part_columns.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

/// Names of a column. The weak ones count where no other column has a strong one.
struct ColumnNames {
  std::vector<std::string_view> strong, weak;
};

const ColumnNames& path_names() {
  static const ColumnNames kNames{
      {"path",      "paths",     "file",          "files", "filename", "filenames",
       "filepath",  "filepaths", "fname",         "image", "images",   "imagepath",
       "imagename", "imagefile", "imagefilename", "img",   "imgs",     "imgpath",
       "imgname",   "imgfile",   "picture",       "photo", "relpath"},
      {"id", "imageid", "imgid", "name"}};
  return kNames;
}

const ColumnNames& label_names() {
  static const ColumnNames kNames{
      {"label", "labels", "class", "classes", "classname", "labelname", "category", "categories",
       "categoryname", "target", "species", "breed", "tag"},
      {"classid", "labelid", "categoryid", "type", "y"}};
  return kNames;
}

/// The column that the header names. Error(data) where several do.
std::optional<std::size_t> find_column(const ListRow& row, const ColumnNames& names,
                                       const std::string& path) {
  for (const auto* known : {&names.strong, &names.weak}) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      if (std::ranges::find(*known, plain_header(row.fields[i])) != known->end())
        found.push_back(i);
    }
    if (found.size() > 1) {
      fail(
          ExitCode::data,
          fmt::format("'{}' line {}: the header has the columns '{}' and '{}' for one thing (which "
                      "to take cannot be told); rename one of them",
                      path, row.line, row.fields[found[0]], row.fields[found[1]]));
    }
    if (!found.empty()) return found.front();
  }
  return std::nullopt;
}

bool exists(const std::string& folder, std::string_view file) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / file, ignored);
}

/// A first line that names no file and whose words come up nowhere else.
bool looks_like_header(const ImageFiles& files, const std::string& folder) {
  constexpr std::size_t kLookedAt = 16;
  if (is_image_file_name(files.path(0)) || exists(folder, files.path(0))) return false;
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files.label_number(i) == files.label_number(0)) return false;
  }
  for (std::size_t i = 1; i < files.size() && i <= kLookedAt; ++i) {
    if (exists(folder, files.path(i))) return true;
  }
  return false;
}

/// Without a header of known names: a path and a class name.
void check_plain_row(const ListRow& first, const std::string& path) {
  if (first.fields.size() != 2) {
    fail(ExitCode::data,
         fmt::format(
             "'{}' line {}: not a path, a separator (tab, or comma in .csv) and a class name "
             "but {} field{} (more columns need a header that names two of them, such as "
             "path and label; a name with a comma needs quotes); correct the list",
             path, first.line, first.fields.size(), first.fields.size() == 1 ? "" : "s"));
  }
  if (!is_image_file_name(first.fields[0]) && is_image_file_name(first.fields[1])) {
    fail(ExitCode::data,
         fmt::format(
             "'{}' line {}: '{}' looks like a class name and '{}' like a path (the path comes "
             "first); swap the columns, or name them in a header: label,path",
             path, first.line, first.fields[0], first.fields[1]));
  }
}

/// Takes a list row by row and keeps of it what names images, whatever else its columns hold.
class ListReader {
 public:
  explicit ListReader(const std::string& path) : path_(path) {}

  void take(const ListRow& row) {
    if (first_line_ == 0) begin(row);
    if (header_ && row.line == first_line_) return;
    const std::string& file = row.fields[columns_.path];
    const std::string& label = row.fields[columns_.label];
    if (file.empty() || label.empty()) {
      fail(ExitCode::data, fmt::format("'{}' line {}: the {} is empty (an image needs both); "
                                       "correct the line",
                                       path_, row.line, file.empty() ? "path" : "class name"));
    }
    if (list_.files.size() == kMaxFiles) {
      fail(ExitCode::data, fmt::format("'{}' names more than {} images (indices have 32 bits); "
                                       "split the list",
                                       path_, with_commas(kMaxFiles)));
    }
    parts_.take(row);
    list_.files.add(file, label);
  }

  ListContent finish() {
    if (!header_ && !list_.files.empty()) refuse_unknown_header();
    if (auto column = parts_.finish(path_)) {
      list_.part_column = std::move(column->header);
      list_.parts = std::move(column->parts);
    }
    return std::move(list_);
  }

 private:
  struct Columns {
    std::size_t path = 0, label = 1;
  };

  void begin(const ListRow& first) {
    first_line_ = first.line;
    const auto file = find_column(first, path_names(), path_);
    const auto label = file ? find_column(first, label_names(), path_) : std::nullopt;
    header_ = file && label;
    if (!header_) return check_plain_row(first, path_);
    columns_ = {*file, *label};
    parts_ = PartColumns(first, *file, *label);
  }

  void refuse_unknown_header() const {
    if (!looks_like_header(list_.files, fs::path(path_).parent_path().string())) return;
    fail(ExitCode::data,
         fmt::format(
             "'{}' line {}: '{}' and '{}' look like a header of unknown names (read as an "
             "image they would make a class); call the columns path and label, or remove the "
             "header",
             path_, first_line_, list_.files.path(0), list_.files.label(0)));
  }

  const std::string& path_;
  std::size_t first_line_ = 0;
  bool header_ = false;
  Columns columns_;
  PartColumns parts_;
  ListContent list_;
};

}  // namespace

bool is_list_name(const std::string& path) {
  const std::string ending = lower_case(fs::path(path).extension().string());
  return ending == ".tsv" || ending == ".txt" || ending == ".csv";
}

ListContent read_list_text(const TextPieces& text, const std::string& path) {
  ListReader reader(path);
  read_table(text, path, [&reader](const ListRow& row) { reader.take(row); });
  return reader.finish();
}

ListContent read_list(const std::string& path) {
  return read_list_text(pieces_of_file(path, "it names the images"), path);
}

}  // namespace cputrain::datasets
