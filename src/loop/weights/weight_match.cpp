#include "loop/weights/weight_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"

namespace cputrain::loop {
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

}  // namespace

std::string extents_text(std::span<const std::size_t> extents) { return joined_extents(extents); }
std::string extents_text(std::span<const int> extents) { return joined_extents(extents); }

WeightMatch match_weights(const model::WeightArrays& file,
                          std::span<const WantedParameter> wanted) {
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

}  // namespace cputrain::loop
