#include "datasets/pixels/random_beta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace cputrain::datasets {
namespace {

std::vector<double> draws(double alpha) {
  std::vector<double> numbers;
  for (int i = 0; i < 20'000; ++i) {
    const RandomStream stream(11, Purpose::mixing, 3, static_cast<std::uint32_t>(i));
    numbers.push_back(beta_number(alpha, stream, 1));
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// The largest distance between the steps of sorted numbers and the distribution.
template <class F>
double kolmogorov(const std::vector<double>& sorted, const F& distribution) {
  double most = 0;
  const auto n = static_cast<double>(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double expected = distribution(sorted[i]);
    most = std::max({most, std::abs(expected - static_cast<double>(i) / n),
                     std::abs(expected - static_cast<double>(i + 1) / n)});
  }
  return most;
}

/// 1.63 / sqrt(n) is passed once in a hundred; the draws are the same in every run.
const double kLimit = 1.63 / std::sqrt(20'000.0);

TEST(BetaNumber, HasTheDistributionsThatAreClosedForms) {
  EXPECT_LT(kolmogorov(draws(1), [](double x) { return x; }), kLimit);
  EXPECT_LT(kolmogorov(draws(0.5),
                       [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); }),
            kLimit);
  EXPECT_LT(kolmogorov(draws(2), [](double x) { return x * x * (3 - 2 * x); }), kLimit);
  EXPECT_LT(kolmogorov(draws(3), [](double x) { return x * x * x * (10 - 15 * x + 6 * x * x); }),
            kLimit);
}

/// The first pair of a stream's words that is taken. Jöhnk takes powers whose sum is at most 1.
/// Cheng draws x by a logistic law, which covers four times the wanted one where both are highest.
double first_taken(double alpha, const RandomStream& stream) {
  for (std::uint32_t at = 1;; ++at) {
    const auto words = stream.at(at);
    const double u = (words[0] + 0.5) / 4294967296, v = (words[1] + 0.5) / 4294967296;
    if (alpha <= 1) {
      const double x = std::pow(u, 1 / alpha), y = std::pow(v, 1 / alpha);
      if (x + y <= 1) return x / (x + y);
    } else {
      const double x = 1 / (1 + std::pow(1 / u - 1, 1 / std::sqrt(alpha)));
      if (v * 4 * u * (1 - u) <= std::pow(4 * x * (1 - x), alpha)) return x;
    }
  }
}

TEST(BetaNumber, IsTheFirstThatIsTaken) {
  for (const double alpha : {0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 8.0, 32.0, 100.0}) {
    for (std::uint32_t i = 0; i < 500; ++i) {
      const RandomStream stream(5, Purpose::mixing, 1, i);
      ASSERT_NEAR(beta_number(alpha, stream, 1), first_taken(alpha, stream), 1e-9) << alpha;
    }
  }
}

TEST(BetaNumber, IsANumberWhereItsPowersVanish) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    const double x = beta_number(1e-4, RandomStream(1, Purpose::mixing, 0, i), 0);
    EXPECT_TRUE(x >= 0 && x <= 1);
  }
}

}  // namespace
}  // namespace cputrain::datasets
