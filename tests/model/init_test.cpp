#include "model/init.h"

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

}  // namespace
}  // namespace cputrain::model
