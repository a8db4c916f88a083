#include "train/weight_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"

namespace cputrain {
namespace {

std::string extents_text(const auto& extents) {
  return extents.empty() ? "a single number" : fmt::format("{}", fmt::join(extents, "x"));
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  const std::span<const std::string> all = names;
  const std::string text = join(all.first(std::min(kNamed, all.size())), ", ");
  return all.size() > kNamed ? text + ", ..." : text;
}

}  // namespace

WeightMatch match_weights(const safetensors::File& file, std::span<const WantedParameter> wanted) {
  WeightMatch match;
  std::set<std::string> known;
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    const auto& [name, extents] = wanted[p];
    known.insert(name);
    const auto* tensor = file.find(name);
    if (!tensor) {
      match.missing.push_back(name);
    } else if (!std::ranges::equal(tensor->extents, extents, {}, {},
                                   [](int n) { return static_cast<std::size_t>(n); })) {
      match.other_shape.push_back(fmt::format(
          "{} is {}, not {}", name, extents_text(tensor->extents), extents_text(extents)));
    } else {
      match.fitting.push_back(p);
    }
  }
  for (const auto& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) match.extra.push_back(printable(tensor.name));
  }
  return match;
}

std::string misfit_text(const WeightMatch& match) {
  std::vector<std::string> parts;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty())
      parts.push_back(fmt::format("{} {} ({})", names.size(), what, first_few(names)));
  };
  add(match.missing, "missing");
  add(match.other_shape, "of another shape");
  add(match.extra, "not in the model");
  return join(parts, "; ");
}

}  // namespace cputrain
