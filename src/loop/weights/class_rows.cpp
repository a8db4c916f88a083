#include "loop/weights/class_rows.h"

#include <algorithm>

#include "data/classes/class_names.h"

namespace cputrain::loop {
namespace {

/// One output speaks for two classes.
bool is_swap(std::span<const std::optional<std::size_t>> source) {
  return source.size() == 2 && source[0] == 1u && source[1] == 0u;
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

bool ClassRows::concerns(const std::string& array) const {
  return !source.empty() && std::ranges::count(outputs.arrays, array) > 0;
}

void ClassRows::rearrange(const std::string& array, std::vector<double>& values) const {
  if (!are_equally_many()) return;
  if (outputs.count == 1) {
    if (!is_swap(source) || std::ranges::count(outputs.negated, array) == 0) return;
    for (double& value : values) value = -value;
    return;
  }
  const std::vector<double> from = values;
  take_columns(from, values);
}

bool ClassRows::has_common() const {
  return std::ranges::any_of(source, [](const auto& from) { return from.has_value(); });
}

bool ClassRows::has_columns(const std::string& array, std::size_t file_columns) const {
  return has_common() && concerns(array) && file_columns == file_classes &&
         static_cast<std::size_t>(outputs.count) == source.size();
}

void ClassRows::take_columns(std::span<const double> from, std::vector<double>& values) const {
  const std::size_t columns = source.size(), rows = values.size() / columns;
  for (std::size_t c = 0; c < columns; ++c) {
    if (!source[c]) continue;
    for (std::size_t r = 0; r < rows; ++r) {
      values[r * columns + c] = from[r * file_classes + *source[c]];
    }
  }
}

}  // namespace cputrain::loop
