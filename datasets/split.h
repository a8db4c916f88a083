#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cputrain::datasets {

/// `total` things shared out in proportion to `weights`, at most limits[i] to i, which gets no less
/// than a smaller one for its limit: whole parts first, then one each by largest remainder
/// (Hamilton's method). Equal remainders are served in `order`, which has each index once. `total`
/// is at most the sum of the limits, and where a limit is not 0 a weight is not.
std::vector<std::size_t> apportion(std::size_t total, std::span<const std::size_t> weights,
                                   std::span<const std::size_t> limits,
                                   std::span<const std::size_t> order);

/// The classes in the order in which `seed` serves equal remainders. All parts of the data take the
/// same one, so that a few images for training and a few for validation are of the same classes.
std::vector<std::size_t> class_order(std::size_t classes, std::uint64_t seed);

/// Why samples are chosen; each use draws its own random numbers.
enum class Choice : std::uint32_t { validation, limit_train, limit_validation };

/// How samples are drawn.
struct Draw {
  std::uint64_t seed = 0;
  Choice use = Choice::validation;
};

/// Classes of samples.
struct Labels {
  std::function<int(std::uint32_t)> of;
  int classes = 0;
};

struct Division {
  std::vector<std::uint32_t> chosen, rest;  ///< ascending
};

/// Chooses `total` of the samples, of every class its proportion among `whole`, which has them all,
/// as f(seed, use). A smaller total chooses a part of what a larger one does where the proportions
/// allow.
Division choose_stratified(std::span<const std::uint32_t> samples,
                           std::span<const std::uint32_t> whole, const Labels&, std::size_t total,
                           const Draw&);

/// Chooses `total` of the samples, as many of every class as it has and equality allows.
Division choose_balanced(std::span<const std::uint32_t> samples, const Labels&, std::size_t total,
                         const Draw&);

/// The validation part: round(split * samples), but every class keeps one sample for training.
Division split_validation(std::span<const std::uint32_t> samples, const Labels&, double split,
                          const Draw&);

}  // namespace cputrain::datasets
