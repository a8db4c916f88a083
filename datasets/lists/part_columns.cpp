#include "datasets/lists/part_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace cputrain::datasets {
namespace {

bool is_part_header(const std::string& header) {
  constexpr std::array<std::string_view, 12> kNames{
      "split",     "splits", "set",   "sets",      "dataset",        "datasplit",
      "partition", "subset", "usage", "traintest", "traintestsplit", "phase"};
  return std::ranges::find(kNames, plain_header(header)) != kNames.end();
}

bool is_yes_or_no(const std::string& value) {
  constexpr std::array<std::string_view, 8> kWords{"0", "1", "true", "false",
                                                   "t", "f", "yes",  "no"};
  return std::ranges::find(kWords, lower_case(value)) != kWords.end();
}

}  // namespace

PartColumns::PartColumns(const ListRow& header, std::size_t path, std::size_t label)
    : line_(header.line) {
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    if (i == path || i == label) continue;
    columns_.push_back({i, header.fields[i], is_part_header(header.fields[i])});
  }
}

void PartColumns::take(const ListRow& row) {
  for (Watched& column : columns_) take(column, row.line, row.fields[column.place]);
}

void PartColumns::take(Watched& column, std::size_t line, const std::string& value) {
  if (column.other && !column.named && !column.yes_or_no) return;  // a column of something else
  const PartName name = part_name(value);
  if (name.part == Part::none || (!name.alone && !column.named)) {
    if (!column.other) column.other = {line, value};
    column.parts = {};
  } else {
    column.found.insert(name.part);
    if (!column.other) column.parts.push_back(name.part);
  }
  column.yes_or_no &= is_yes_or_no(value);
  if (column.yes_or_no) column.answers.insert(lower_case(value));
}

bool PartColumns::says_parts(const Watched& column, const std::string& list) {
  const bool named = column.named || part_name(column.header).part != Part::none;
  const bool flag = named && column.yes_or_no && column.answers.size() == 2;
  if (flag || (column.named && column.other && !column.found.empty())) {
    fail(ExitCode::data,
         fmt::format("'{}' line {}: the column '{}' seems to say the part of each image, and its "
                     "value '{}' names none (all rows would be trained on); write train, val or "
                     "test, or rename the column",
                     list, column.other->first, column.header, column.other->second));
  }
  return !column.other && column.found.size() >= 2;
}

std::optional<PartColumns::Column> PartColumns::finish(const std::string& list) {
  Watched* found = nullptr;
  for (Watched& column : columns_) {
    if (!says_parts(column, list)) continue;
    if (found) {
      fail(ExitCode::data,
           fmt::format("'{}' line {}: the columns '{}' and '{}' both say the part of each image "
                       "(which to take cannot be told); remove one of them",
                       list, line_, found->header, column.header));
    }
    found = &column;
  }
  if (!found) return std::nullopt;
  return Column{std::move(found->header), std::move(found->parts)};
}

}  // namespace cputrain::datasets
