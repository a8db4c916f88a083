#include "weights/weight_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/csv.h"
#include "core/text.h"
#include "data/classes/class_names.h"

namespace cputrain::weights {
namespace {

/// "3x3x64x128"; "a single number" for a scalar.
std::string extents_text(const auto& extents) {
  return extents.empty() ? "a single number" : fmt::format("{}", fmt::join(extents, "x"));
}

std::string csv_row(const std::string& parameter, const std::string& shape,
                    const std::string& array, const std::string& array_shape, const char* done) {
  return fmt::format("{},{},{},{},{}\r\n", csv_cell(parameter), shape, csv_cell(printable(array)),
                     array_shape, done);
}

const char* done_with(const WeightMatch::Row& row) {
  switch (row.fit) {
    case Fit::whole:
      return row.array->rearranged ? "rearranged" : "taken";
    case Fit::common_classes:
      return "outputs of common classes";
    case Fit::missing:
      return "not in the file";
    case Fit::other_outputs:
    case Fit::other_inputs:
    case Fit::other_shape:
      break;
  }
  return "left: another shape";
}

/// The file's own place where that is free, else the first that is.
void take_what_is_left(std::vector<std::optional<std::size_t>>& source, std::vector<bool>& taken) {
  const auto take = [&](std::size_t c, std::size_t place) {
    source[c] = place;
    taken[place] = true;
  };
  for (std::size_t c = 0; c < source.size(); ++c) {
    if (!source[c] && !taken[c]) take(c, c);
  }
  for (std::size_t c = 0, place = 0; c < source.size(); ++c) {
    if (source[c]) continue;
    while (taken[place]) ++place;
    take(c, place);
  }
}

}  // namespace

std::size_t WeightMatch::count(Fit fit) const {
  return static_cast<std::size_t>(std::ranges::count(rows, fit, &Row::fit));
}

std::vector<std::string> WeightMatch::named(Fit fit) const {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.fit == fit) names.push_back(row.parameter);
  }
  return names;
}

bool WeightMatch::whole() const {
  return extra.empty() && std::ranges::all_of(rows, &Row::is_taken);
}

bool WeightMatch::takes(const std::string& parameter) const {
  const auto row = std::ranges::find(rows, parameter, &Row::parameter);
  return row != rows.end() && row->is_taken();
}

std::string misfit_text(const WeightMatch& match) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> parts, other_shape, extra;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty())
      parts.push_back(fmt::format("{} {} ({})", names.size(), what, first_few(names, kNamed)));
  };
  const auto add_shapes = [&](bool outputs) {
    for (const WeightMatch::Row& row : match.rows) {
      if (row.is_taken() || !row.array || (row.fit == Fit::other_outputs) != outputs) continue;
      other_shape.push_back(fmt::format("{} is {}, not {}", row.parameter,
                                        extents_text(row.array->extents),
                                        extents_text(row.extents)));
    }
  };
  add_shapes(false);
  add_shapes(true);
  for (const StoredArray& array : match.extra) extra.push_back(printable(array.name));
  add(match.named(Fit::missing), "missing");
  add(other_shape, "of another shape");
  add(extra, "not in the model");
  return join(parts, "; ");
}

bool ClassMatch::moves() const {
  for (std::size_t c = 0; c < source.size(); ++c) {
    if (source[c] && source[c] != c) return true;
  }
  return false;
}

ClassMatch match_classes(std::span<const std::string> classes, std::span<const std::string> file,
                         std::size_t named) {
  ClassMatch match{.source = {}, .others = {}, .names = data::match_names(classes, file)};
  match.source = match.names.place;
  std::vector<bool> taken(file.size()), named_so(classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!match.source[c]) continue;
    taken[*match.source[c]] = named_so[c] = true;
    ++match.by_name;
  }
  if (classes.size() != file.size()) return match;
  take_what_is_left(match.source, taken);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const std::size_t place = *match.source[c];
    if (!named_so[c] && c < named && !data::is_name_of_nameless(file[place], place))
      match.others.push_back(c);
  }
  return match;
}

std::string taken_text(const WeightArrays& file, const WeightMatch& match,
                       const ClassMatch& classes, const std::string& name) {
  std::string text = fmt::format("{} of {} parameter arrays are those of {}",
                                 match.count(Fit::whole), match.rows.size(), name);
  if (!file.origin.empty()) {
    const auto rearranged = std::ranges::count_if(match.rows, [](const WeightMatch::Row& row) {
      return row.fit == Fit::whole && row.array->rearranged;
    });
    text += fmt::format(" ({}; {} rearranged)", file.origin, rearranged);
  }
  if (const auto by_class = match.named(Fit::common_classes); !by_class.empty()) {
    text += fmt::format("; of {} the outputs of {} that both know", first_few(by_class),
                        counted(classes.by_name, "class"));
  }
  if (!match.whole()) text += "; not taken: " + misfit_text(match);
  if (!file.ignored.empty()) {
    text += fmt::format("; not needed: {} without weights", counted(file.ignored.size(), "array"));
  }
  return text;
}

std::string taken_table(const WeightArrays& file, const WeightMatch& match) {
  std::string table = "parameter,shape,array,array_shape,done\r\n";
  for (const WeightMatch::Row& row : match.rows) {
    table +=
        csv_row(row.parameter, extents_text(row.extents), row.array ? row.array->file_name : "",
                row.array ? extents_text(row.array->file_extents) : "", done_with(row));
  }
  for (const StoredArray& array : match.extra) {
    table += csv_row("", "", array.file_name, extents_text(array.file_extents), "not in the model");
  }
  for (const std::string& name : file.ignored) table += csv_row("", "", name, "", "not needed");
  return table;
}

}  // namespace cputrain::weights
