#include "model/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "zoo/zoo.h"

namespace cputrain::model {
namespace {

TEST(InitialValues, AreGlorotUniform) {
  const Graph graph = zoo::find_model("dogcat")->build({64, 64, 3}, 2);
  const auto& node = graph.nodes()[4];  // convolution 32 -> 64, 3x3
  ASSERT_EQ(node.name, "conv2d_1");
  const auto values = initial_values(node, node.parameters[0], 5);
  ASSERT_EQ(values.size(), 9u * 32 * 64);
  const double limit = std::sqrt(6.0 / (9 * 32 + 9 * 64));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -limit);
  EXPECT_LE(*high, limit);
  EXPECT_LT(*low, -0.99 * limit);
  EXPECT_GT(*high, 0.99 * limit);
  // A uniform variable in +-limit has variance limit^2 / 3.
  double square = 0;
  for (const double v : values) square += v * v;
  EXPECT_NEAR(square / static_cast<double>(values.size()), limit * limit / 3, 0.02 * limit * limit);
}

TEST(InitialValues, AreZeroForBiasesAndAFunctionOfSeedAndLayer) {
  const Graph graph = zoo::find_model("dogcat")->build({64, 64, 3}, 2);
  const auto& first = graph.nodes()[7];
  const auto& second = graph.nodes()[10];
  for (const double v : initial_values(first, first.parameters[1], 1)) EXPECT_EQ(v, 0);
  EXPECT_EQ(initial_values(first, first.parameters[0], 1),
            initial_values(first, first.parameters[0], 1));
  EXPECT_NE(initial_values(first, first.parameters[0], 1)[0],
            initial_values(first, first.parameters[0], 2)[0]);
  EXPECT_NE(initial_values(first, first.parameters[0], 1)[0],
            initial_values(second, second.parameters[0], 1)[0]);
}

/// Mean square of a kernel's first values, and the largest of them.
struct Spread {
  double square, largest;
};
Spread spread_of(const Graph::Node& node, std::size_t parameter) {
  Spread spread{0, 0};
  const auto values = initial_values(node, node.parameters[parameter], 5);
  for (const double v : values) {
    spread.square += v * v / static_cast<double>(values.size());
    spread.largest = std::max(spread.largest, std::abs(v));
  }
  return spread;
}

/// 64 channels, 96 filters of 3 x 3 in so many groups.
Graph convolved(Initializer init, int groups) {
  Graph graph({32, 32, 3});
  graph.add(Convolution{64, 1});
  graph.add(Convolution{.filters = 192, .kernel = 3, .groups = groups, .init = init});
  return graph;
}

TEST(InitialValues, FollowTheLawOfTheirLayer) {
  const auto square = [](Initializer init, int groups) {
    const Graph graph = convolved(init, groups);
    return spread_of(graph.back(), 0).square;
  };
  const double in = 9 * 64, out = 9 * 192;
  const auto expect = [](double measured, double variance) {
    EXPECT_NEAR(measured / variance, 1, 0.05);
  };
  using enum Initializer;
  expect(square(he_normal, 1), 2 / in);
  expect(square(he_normal, 4), 2 / (in / 4));
  expect(square(he_normal_out, 1), 2 / out);
  expect(square(he_normal_out, 4), 2 / out);
  expect(square(he_normal_group, 4), 2 / (out / 4));
  expect(square(normal_hundredth, 1), 1e-4);
  expect(square(uniform_in, 1), 1 / in / 3);
  expect(square(uniform_in_only, 4), 1 / (in / 4) / 3);
  expect(square(uniform_out, 1), 1 / out / 3);
  expect(square(glorot_uniform, 1), 6 / (in + out) / 3);
}

TEST(InitialValues, OfUniformLawsStayWithinTheirLimit) {
  const Graph graph = convolved(Initializer::uniform_in, 1);
  const double limit = 1 / std::sqrt(9.0 * 64);
  for (const std::size_t parameter : {0, 1}) {
    const Spread spread = spread_of(graph.back(), parameter);
    EXPECT_LE(spread.largest, limit);
    EXPECT_GT(spread.largest, 0.95 * limit);
  }
  const Graph zeros = convolved(Initializer::uniform_in_only, 1);
  EXPECT_EQ(spread_of(zeros.back(), 1).largest, 0);
  EXPECT_GT(spread_of(convolved(Initializer::he_normal, 1).back(), 0).largest,
            3 * std::sqrt(2 / (9.0 * 64)));  // a normal law has no limit
}

}  // namespace
}  // namespace cputrain::model
