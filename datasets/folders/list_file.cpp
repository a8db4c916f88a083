#include "datasets/folders/list_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/folder_names.h"
#include "datasets/folders/list_table.h"
#include "datasets/loader/read_file.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxListBytes = std::size_t{1} << 33;

struct Columns {
  std::size_t path = 0, label = 1;
  bool header = false;
};

/// Letters alone, in lower case: "File Name" and "file_name" are one.
std::string plain(std::string_view name) {
  std::string letters = lower_case(name);
  std::erase_if(letters, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return letters;
}

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
      if (std::ranges::find(*known, plain(row.fields[i])) != known->end()) found.push_back(i);
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

bool exists(const std::string& folder, const std::string& file) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / file, ignored);
}

/// A first line that names no file and whose words come up nowhere else.
bool looks_like_header(const std::vector<ListRow>& rows, const std::string& folder) {
  constexpr std::size_t kLookedAt = 16;
  const auto& first = rows.front().fields;
  if (is_image_file_name(first[0]) || exists(folder, first[0])) return false;
  const auto rest = std::span(rows).subspan(1);
  const bool label_again =
      std::ranges::any_of(rest, [&](const ListRow& row) { return row.fields[1] == first[1]; });
  const auto near = rest.first(std::min(kLookedAt, rest.size()));
  return !label_again && std::ranges::any_of(near, [&](const ListRow& row) {
    return exists(folder, row.fields[0]);
  });
}

/// Without a header of known names: a path and a class name.
void check_plain_rows(const std::vector<ListRow>& rows, const std::string& path,
                      const std::string& folder) {
  const ListRow& first = rows.front();
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
  if (looks_like_header(rows, folder)) {
    fail(ExitCode::data,
         fmt::format(
             "'{}' line {}: '{}' and '{}' look like a header of unknown names (read as an "
             "image they would make a class); call the columns path and label, or remove the "
             "header",
             path, first.line, first.fields[0], first.fields[1]));
  }
}

Columns find_columns(const std::vector<ListRow>& rows, const std::string& path,
                     const std::string& folder) {
  const auto file = find_column(rows.front(), path_names(), path);
  const auto label = file ? find_column(rows.front(), label_names(), path) : std::nullopt;
  if (file && label) return {*file, *label, true};
  check_plain_rows(rows, path, folder);
  return {};
}

bool is_part_header(const std::string& header) {
  constexpr std::array<std::string_view, 12> kNames{
      "split",     "splits", "set",   "sets",      "dataset",        "datasplit",
      "partition", "subset", "usage", "traintest", "traintestsplit", "phase"};
  return std::ranges::find(kNames, plain(header)) != kNames.end();
}

bool is_yes_or_no(const std::string& value) {
  constexpr std::array<std::string_view, 8> kWords{"0", "1", "true", "false",
                                                   "t", "f", "yes",  "no"};
  return std::ranges::find(kWords, lower_case(value)) != kWords.end();
}

/// Whether a column says the part of each row. Where its name says so, words beside that of the
/// part do no harm: "PublicTest". Error(data) where it says the part of some rows only, or as yes
/// and no: all rows would train.
bool says_parts(const std::vector<ListRow>& rows, std::size_t column, const std::string& path) {
  const std::string& header = rows.front().fields[column];
  const bool named = is_part_header(header);
  std::set<Part> parts;
  std::set<std::string> values;
  const ListRow* other = nullptr;
  bool yes_or_no = true;
  for (const ListRow& row : std::span(rows).subspan(1)) {
    const std::string& value = row.fields[column];
    const PartName name = part_name(value);
    const bool is_part = name.part != Part::none && (name.alone || named);
    if (is_part) parts.insert(name.part);
    if (!is_part && !other) other = &row;
    yes_or_no &= is_yes_or_no(value);
    if (yes_or_no) values.insert(lower_case(value));
  }
  const bool flag =
      (named || part_name(header).part != Part::none) && yes_or_no && values.size() == 2;
  if (flag || (named && other && !parts.empty())) {
    fail(ExitCode::data,
         fmt::format("'{}' line {}: the column '{}' seems to say the part of each image, and its "
                     "value '{}' names none (all rows would be trained on); write train, val or "
                     "test, or rename the column",
                     path, other->line, header, other->fields[column]));
  }
  return !other && parts.size() >= 2;
}

std::optional<std::size_t> find_parts(const std::vector<ListRow>& rows, const Columns& columns,
                                      const std::string& path) {
  if (!columns.header) return std::nullopt;
  const auto& names = rows.front().fields;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == columns.path || i == columns.label || !says_parts(rows, i, path)) continue;
    if (found) {
      fail(ExitCode::data,
           fmt::format("'{}' line {}: the columns '{}' and '{}' both say the part of each image "
                       "(which to take cannot be told); remove one of them",
                       path, rows.front().line, names[*found], names[i]));
    }
    found = i;
  }
  return found;
}

}  // namespace

bool is_list_name(const std::string& path) {
  const std::string ending = lower_case(fs::path(path).extension().string());
  return ending == ".tsv" || ending == ".txt" || ending == ".csv";
}

ListContent read_list(const std::string& path) {
  const FileContent text = read_file(path, kMaxListBytes);
  if (text.result.status != data::ReadStatus::ok && text.result.status != data::ReadStatus::empty) {
    fail(ExitCode::data, "list file '" + path + "' cannot be read: " + text.result.detail +
                             " (it names the images); check the path and its permissions");
  }
  std::vector<ListRow> rows =
      read_table({reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()}, path);
  if (rows.empty()) return {};
  const Columns columns = find_columns(rows, path, fs::path(path).parent_path().string());
  const auto parts = find_parts(rows, columns, path);
  ListContent list;
  if (parts) list.part_column = rows.front().fields[*parts];
  list.files.reserve(rows.size());
  for (std::size_t i = columns.header ? 1 : 0; i < rows.size(); ++i) {
    std::string& file = rows[i].fields[columns.path];
    std::string& label = rows[i].fields[columns.label];
    if (file.empty() || label.empty()) {
      fail(ExitCode::data,
           fmt::format("'{}' line {}: the {} is empty (an image needs both); correct "
                       "the line",
                       path, rows[i].line, file.empty() ? "path" : "class name"));
    }
    if (parts) list.parts.push_back(part_name(rows[i].fields[*parts]).part);
    list.files.push_back({std::move(file), std::move(label)});
  }
  return list;
}

}  // namespace cputrain::datasets
