#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/backends/backends_under_test.h"
#include "tests/backends/layer_cases.h"

/// Every layer on every backend, against plain loops in double.
namespace cputrain::testing {
namespace {

using Parameters = std::tuple<BackendUnderTest, LayerCase>;
class Layers : public ::testing::TestWithParam<Parameters> {};

/// The worst tensor's distance from the reference, on images made from `seed`.
Distance compare(compute::Backend& backend, const LayerCase& c, std::uint64_t seed) {
  const Outcome& e = outcome_in_double(c, seed, Run::step);
  const Outcome a = outcome_on(backend, c, seed, Run::step);
  EXPECT_EQ(a.tally.correct, e.tally.correct);
  EXPECT_EQ(a.tally.images, c.images);
  Distance worst{"", 0};
  for (const Distance& found : distances(c, a, e)) {
    if (!(found.relative <= worst.relative)) worst = found;  // NaN counts as worst
  }
  return worst;
}

TEST_P(Layers, AgreeWithPlainLoopsInDouble) {
  const auto& [under_test, c] = GetParam();
  if (!under_test.runs(build(c))) return expect_refusal(under_test, build(c));
  if (under_test.emulated && c.large) return;  // it has no caches
  const auto backend = under_test.make();
  // Rounding that turns one number's sign before a ReLU, or the winner of a window, moves a
  // gradient by a percent or two: rarely on small images, often on large ones. A mistake in a
  // kernel shows with any images, and by more.
  constexpr double kFlip = 0.05;
  double best = HUGE_VAL;
  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    const Distance found = compare(*backend, c, seed);
    EXPECT_LE(found.relative, kFlip) << found.tensor << ", images of seed " << seed;
    best = std::min(best, found.relative);
    if (best <= under_test.tolerance) break;
  }
  EXPECT_LE(best, under_test.tolerance);
}

TEST_P(Layers, EvaluateWithoutGradients) {
  const auto& [under_test, c] = GetParam();
  if (!under_test.runs(build(c))) return expect_refusal(under_test, build(c));
  if (under_test.emulated && c.large) return;  // it has no caches
  const compute::Tally e = outcome_in_double(c, 2, Run::loss).tally;
  const compute::Tally a = outcome_on(*under_test.make(), c, 2, Run::loss).tally;
  EXPECT_NEAR(a.loss, e.loss, under_test.tolerance * e.loss);
  EXPECT_EQ(a.correct, e.correct);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Layers,
                         ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                                            ::testing::ValuesIn(layer_cases())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace cputrain::testing
