#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/backends/backends_under_test.h"
#include "tests/backends/layer_cases.h"

/// Every layer on every backend, against plain loops in double.
namespace cputrain::testing::layers_test {
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

/// Images whose one black pixel a convolution by minus infinity makes NaN; ReLU leaves zeros of the
/// others. As in PyTorch, the pool must not hide it, wherever in its window it lies.
class MaxPools : public ::testing::TestWithParam<BackendUnderTest> {};

TEST_P(MaxPools, SpreadNaN) {
  // Products of CUDA split numbers, and infinity has no parts; pools_kernels_test has its pools.
  if (GetParam().name.starts_with("cuda")) return;
  const model::MaxPool pools[] = {{2, 2}, {3, 2}, {3, 1, model::Padding::same}};
  for (const model::MaxPool& pool : pools) {
    for (const bool alone : {false, true}) {  // or in one pass with the convolution
      LayerCase c{"", {5, 5, 3}, {model::Convolution{.filters = 16, .kernel = 1}}, 3, 1};
      if (alone) c.layers.push_back(model::MaxPool{1, 1});
      c.layers.insert(c.layers.end(), {pool, model::Relu{}});
      const auto backend = GetParam().make();
      Trial trial(*backend, build(c), {1}, compute::Phase::evaluate, nullptr, nullptr,
                  [](const model::Graph::Node& node, std::size_t index) {
                    std::vector<double> values = trial_weights(node, index);
                    const bool convolves = std::holds_alternative<model::Convolution>(node.layer);
                    if (convolves && index == 0) std::ranges::fill(values, -HUGE_VAL);
                    return values;
                  });
      for (int black = -1; black < 16; ++black) {
        Samples images = make_images(1, c.image, 3, 2);
        for (std::uint8_t& value : images.images[0]) value = std::max<std::uint8_t>(value, 1);
        if (black >= 0)
          images.images[0][static_cast<std::size_t>(black / 4 * 5 + black % 4) * 3] = 0;
        const double loss = trial.evaluate(images, {1}).tally.loss;
        EXPECT_EQ(std::isnan(loss), black >= 0) << pool.size << " " << alone << " " << black;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, MaxPools, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(AllBackends, Layers,
                         ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                                            ::testing::ValuesIn(layer_cases())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace cputrain::testing::layers_test
