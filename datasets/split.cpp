#include "datasets/split.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/random/random.h"

namespace cputrain::datasets {
namespace {

using Labels = std::function<int(std::uint32_t)>;
using ByClass = std::vector<std::vector<std::uint32_t>>;

ByClass group(std::span<const std::uint32_t> samples, const Labels& label_of, int classes) {
  ByClass groups(static_cast<std::size_t>(classes));
  for (const std::uint32_t sample : samples) {
    groups[static_cast<std::size_t>(label_of(sample))].push_back(sample);
  }
  return groups;
}

std::vector<std::size_t> sizes_of(const ByClass& groups) {
  std::vector<std::size_t> sizes;
  for (const auto& group : groups) sizes.push_back(group.size());
  return sizes;
}

/// The first steps of Fisher and Yates' shuffle: quotas[c] samples of class c come to the front,
/// and they are the same whatever the quota beyond them.
Division draw(ByClass groups, std::span<const std::size_t> quotas, std::uint64_t seed, Choice use) {
  Division division;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    auto& members = groups[c];
    const RandomStream stream(seed, Purpose::split, static_cast<std::uint32_t>(c),
                              static_cast<std::uint32_t>(use));
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

std::vector<std::size_t> apportion(std::size_t total, std::span<const std::size_t> counts) {
  const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  assert(total <= sum);
  std::vector<std::size_t> parts(counts.size());
  if (sum == 0) return parts;
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::size_t given = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) given += parts[i] = total * counts[i] / sum;
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return total * counts[i] % sum; });
  for (std::size_t k = 0; given < total; ++k, ++given) ++parts[order[k]];
  return parts;
}

Division choose_stratified(std::span<const std::uint32_t> samples, const Labels& label_of,
                           int classes, std::size_t total, std::uint64_t seed, Choice use) {
  ByClass groups = group(samples, label_of, classes);
  const auto quotas = apportion(std::min(total, samples.size()), sizes_of(groups));
  return draw(std::move(groups), quotas, seed, use);
}

std::vector<std::size_t> level(std::size_t total, std::span<const std::size_t> counts) {
  std::vector<std::size_t> parts(counts.size()), order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Smallest first: what they cannot take is shared by those that come after them. Of equal ones
  // the last index comes first, since shares are rounded down as long as others follow.
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a > b;
  });
  std::size_t left = total;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t part = std::min(counts[order[k]], left / (order.size() - k));
    parts[order[k]] = part;
    left -= part;
  }
  return parts;
}

Division choose_balanced(std::span<const std::uint32_t> samples, const Labels& label_of,
                         int classes, std::size_t total, std::uint64_t seed, Choice use) {
  ByClass groups = group(samples, label_of, classes);
  const auto quotas = level(std::min(total, samples.size()), sizes_of(groups));
  return draw(std::move(groups), quotas, seed, use);
}

Division split_validation(std::span<const std::uint32_t> samples, const Labels& label_of,
                          int classes, double split, std::uint64_t seed) {
  ByClass groups = group(samples, label_of, classes);
  const auto sizes = sizes_of(groups);
  const auto total =
      static_cast<std::size_t>(std::llround(split * static_cast<double>(samples.size())));
  auto quotas = apportion(std::min(total, samples.size()), sizes);
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    quotas[c] = std::min(quotas[c], std::max<std::size_t>(sizes[c], 1) - 1);
  }
  return draw(std::move(groups), quotas, seed, Choice::validation);
}

}  // namespace cputrain::datasets
