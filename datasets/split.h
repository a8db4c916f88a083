#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cputrain::datasets {

/// `total` things shared out in proportion to `counts`, at most counts[i] to i: whole parts first,
/// then one each by largest remainder (Hamilton's method), ties to the lower index.
std::vector<std::size_t> apportion(std::size_t total, std::span<const std::size_t> counts);

/// Why samples are chosen; each use draws its own random numbers.
enum class Choice : std::uint32_t { validation, limit_train, limit_validation };

struct Division {
  std::vector<std::uint32_t> chosen, rest;  ///< ascending
};

/// Chooses `total` of the samples, of every class its proportion, as f(seed, use). A smaller total
/// chooses a part of what a larger one does where the proportions allow.
Division choose_stratified(std::span<const std::uint32_t> samples,
                           const std::function<int(std::uint32_t)>& label_of, int classes,
                           std::size_t total, std::uint64_t seed, Choice use);

/// `total` things shared out as equally as `counts` allow, at most counts[i] to i; what does not
/// divide goes to the lower indices.
std::vector<std::size_t> level(std::size_t total, std::span<const std::size_t> counts);

/// Chooses `total` of the samples, as many of every class as it has and equality allows.
Division choose_balanced(std::span<const std::uint32_t> samples,
                         const std::function<int(std::uint32_t)>& label_of, int classes,
                         std::size_t total, std::uint64_t seed, Choice use);

/// The validation part: round(split * samples), but every class keeps one sample for training.
Division split_validation(std::span<const std::uint32_t> samples,
                          const std::function<int(std::uint32_t)>& label_of, int classes,
                          double split, std::uint64_t seed);

}  // namespace cputrain::datasets
