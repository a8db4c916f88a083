#include "weights/weight_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"
#include "data/classes/class_names.h"

namespace cputrain::weights {
namespace {

std::string joined_extents(const auto& extents) {
  return extents.empty() ? "a single number" : fmt::format("{}", fmt::join(extents, "x"));
}

bool same(std::span<const std::size_t> stored, std::span<const int> wanted) {
  return std::ranges::equal(stored, wanted, {}, {},
                            [](int n) { return static_cast<std::size_t>(n); });
}

bool differs_in_columns(std::span<const std::size_t> stored, std::span<const int> wanted) {
  return !stored.empty() && stored.size() == wanted.size() &&
         same(stored.first(stored.size() - 1), wanted.first(wanted.size() - 1));
}

bool differs_in_rows(std::span<const std::size_t> stored, std::span<const int> wanted) {
  return stored.size() == 2 && wanted.size() == 2 && same(stored.last(1), wanted.last(1));
}

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

std::string extents_text(std::span<const std::size_t> extents) { return joined_extents(extents); }
std::string extents_text(std::span<const int> extents) { return joined_extents(extents); }

WeightMatch match_weights(const WeightArrays& file, std::span<const WantedParameter> wanted) {
  WeightMatch match;
  std::set<std::string> known;
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    const auto& [name, extents] = wanted[p];
    known.insert(name);
    const auto* array = file.find(name);
    if (!array) {
      match.missing.push_back(name);
    } else if (!same(array->extents, extents)) {
      const std::string text = fmt::format("{} is {}, not {}", name, extents_text(array->extents),
                                           extents_text(extents));
      if (differs_in_columns(array->extents, extents)) {
        match.other_columns.push_back({p, text});
      } else {
        match.other_shape.push_back(text);
        if (differs_in_rows(array->extents, extents)) match.other_rows.push_back(name);
      }
    } else {
      match.fitting.push_back(p);
    }
  }
  for (const auto& array : file.arrays()) {
    if (!known.contains(array.name)) match.extra.push_back(printable(array.name));
  }
  return match;
}

std::string misfit_text(const WeightMatch& match) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> parts;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty())
      parts.push_back(fmt::format("{} {} ({})", names.size(), what, first_few(names, kNamed)));
  };
  add(match.missing, "missing");
  std::vector<std::string> other_shape = match.other_shape;
  for (const auto& array : match.other_columns) other_shape.push_back(array.text);
  add(other_shape, "of another shape");
  add(match.extra, "not in the model");
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

}  // namespace cputrain::weights
