#include "datasets/split.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/casts.h"
#include "core/random/random.h"

namespace cputrain::datasets {
namespace {

using ByClass = std::vector<std::vector<std::uint32_t>>;
using Sizes = std::vector<std::size_t>;

ByClass group(std::span<const std::uint32_t> samples, const Labels& labels) {
  ByClass groups(to_size(labels.classes));
  for (const std::uint32_t sample : samples) {
    groups[to_size(labels.of(sample))].push_back(sample);
  }
  return groups;
}

Sizes sizes_of(const ByClass& groups) {
  Sizes sizes;
  for (const auto& group : groups) sizes.push_back(group.size());
  return sizes;
}

Sizes sizes_by_class(std::span<const std::uint32_t> samples, const Labels& labels) {
  Sizes sizes(to_size(labels.classes));
  for (const std::uint32_t sample : samples) ++sizes[to_size(labels.of(sample))];
  return sizes;
}

Sizes counted_up(std::size_t count) {
  Sizes order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// The first steps of Fisher and Yates' shuffle: quotas[c] samples of class c come to the front,
/// and they are the same whatever the quota beyond them.
Division draw(ByClass groups, std::span<const std::size_t> quotas, const Draw& by) {
  Division division;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    auto& members = groups[c];
    const RandomStream stream(by.seed, Purpose::split, static_cast<std::uint32_t>(c),
                              static_cast<std::uint32_t>(by.use));
    for (std::size_t i = 0; i < quotas[c]; ++i) {
      const auto left = static_cast<std::uint32_t>(members.size() - i);
      std::swap(members[i], members[i + below(stream.at(static_cast<std::uint32_t>(i))[0], left)]);
    }
    const auto middle = members.begin() + static_cast<std::ptrdiff_t>(quotas[c]);
    division.chosen.insert(division.chosen.end(), members.begin(), middle);
    division.rest.insert(division.rest.end(), middle, members.end());
  }
  std::ranges::sort(division.chosen);
  std::ranges::sort(division.rest);
  return division;
}

}  // namespace

std::vector<std::size_t> apportion(std::size_t total, std::span<const std::size_t> weights,
                                   std::span<const std::size_t> limits,
                                   std::span<const std::size_t> order) {
  Sizes parts(weights.size()), open(order.begin(), order.end());
  for (;;) {  // what full ones leave may fill others
    std::size_t sum = 0, taken = 0;
    for (const std::size_t i : open) sum += weights[i];
    const auto full = [&](std::size_t i) { return total * weights[i] >= limits[i] * sum; };
    const auto first_full = std::stable_partition(open.begin(), open.end(), std::not_fn(full));
    if (first_full == open.end()) break;
    for (auto i = first_full; i != open.end(); ++i) taken += parts[*i] = limits[*i];
    open.erase(first_full, open.end());
    total -= taken;
  }
  std::size_t sum = 0, given = 0;
  for (const std::size_t i : open) sum += weights[i];
  for (const std::size_t i : open) given += parts[i] = total * weights[i] / sum;
  std::ranges::stable_sort(open, std::greater{},
                           [&](std::size_t i) { return total * weights[i] % sum; });
  for (std::size_t k = 0; given < total; ++k, ++given) ++parts[open[k]];
  return parts;
}

std::vector<std::size_t> class_order(std::size_t classes, std::uint64_t seed) {
  constexpr std::uint32_t kOrder = 3;  // no Choice has it
  const auto key = [seed](std::size_t c) {
    return RandomStream(seed, Purpose::split, static_cast<std::uint32_t>(c), kOrder).at(0);
  };
  Sizes order = counted_up(classes);
  std::ranges::stable_sort(order, {}, key);
  return order;
}

Division choose_stratified(std::span<const std::uint32_t> samples,
                           std::span<const std::uint32_t> whole, const Labels& labels,
                           std::size_t total, const Draw& by) {
  ByClass groups = group(samples, labels);
  // By what a split leaves, classes without an image for validation would come first.
  const Sizes weights = sizes_by_class(whole, labels);
  const Sizes quotas = apportion(std::min(total, samples.size()), weights, sizes_of(groups),
                                 class_order(groups.size(), by.seed));
  return draw(std::move(groups), quotas, by);
}

Division choose_balanced(std::span<const std::uint32_t> samples, const Labels& labels,
                         std::size_t total, const Draw& by) {
  ByClass groups = group(samples, labels);
  const Sizes sizes = sizes_of(groups);
  const Sizes alike(sizes.size(), 1);
  const Sizes quotas =
      apportion(std::min(total, samples.size()), alike, sizes, class_order(sizes.size(), by.seed));
  return draw(std::move(groups), quotas, by);
}

Division split_validation(std::span<const std::uint32_t> samples, const Labels& labels,
                          double split, const Draw& by) {
  ByClass groups = group(samples, labels);
  const Sizes sizes = sizes_of(groups);
  const auto asked = to_size(std::llround(split * to_double(samples.size())));
  Sizes quotas =
      apportion(std::min(asked, samples.size()), sizes, sizes, class_order(sizes.size(), by.seed));
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    quotas[c] = std::min(quotas[c], std::max<std::size_t>(sizes[c], 1) - 1);
  }
  return draw(std::move(groups), quotas, by);
}

}  // namespace cputrain::datasets
