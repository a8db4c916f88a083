#include "model/graph.h"

#include <gtest/gtest.h>

#include "compute/parameters/parameters.h"
#include "core/error.h"
#include "model/rewrite.h"

namespace cputrain::model {
namespace {

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> list;
  for (const auto& node : graph.nodes()) list.push_back(node.name);
  return list;
}

Graph small_graph() {
  Graph graph({12, 12, 3});
  graph.add(Convolution{4, 3});
  graph.add(Relu{});
  graph.add(MaxPool{});
  graph.add(Convolution{8, 3});
  graph.add(Relu{});
  graph.add(Flatten{});
  graph.add(Dropout{0.5f});
  graph.add(Dense{1});
  graph.add(SigmoidCrossEntropy{});
  return graph;
}

TEST(Graph, NamesLayersAsKerasDoes) {
  EXPECT_EQ(names(small_graph()),
            (std::vector<std::string>{"input", "conv2d", "re_lu", "max_pooling2d", "conv2d_1",
                                      "re_lu_1", "flatten", "dropout", "dense", "sigmoid"}));
  EXPECT_EQ(small_graph().nodes()[4].parameters[0].name, "conv2d_1/kernel");
}

TEST(Graph, CountsTrainingFlopsWithoutTheFirstInputGradient) {
  Graph graph({4, 4, 1});
  graph.add(Convolution{2, 3});  // 2*2*2 outputs x 9
  graph.add(Dense{5});           // 8 x 5
  EXPECT_EQ(graph.training_flops(), 2.0 * (72 * 2 + 40 * 3));
}

TEST(Graph, CountsNoGradientsOfFrozenLayers) {
  Graph graph({4, 4, 1});
  graph.add(Convolution{2, 3}, "first");  // 2*2*2 outputs x 9
  graph.add(Dense{5}, "middle");          // 8 x 5
  graph.add(Dense{3}, "last");            // 5 x 3
  const auto flops = [&](std::vector<std::string> layers) {
    return with_frozen(graph, layers).training_flops();
  };
  EXPECT_EQ(flops({}), 2.0 * (72 * 2 + 40 * 3 + 15 * 3));
  EXPECT_EQ(flops({"first"}), 2.0 * (72 + 40 * 2 + 15 * 3));
  EXPECT_EQ(flops({"first", "middle"}), 2.0 * (72 + 40 + 15 * 2));
  EXPECT_EQ(flops({"middle"}), 2.0 * (72 * 2 + 40 * 2 + 15 * 3));
}

TEST(Graph, SaysWhichLayerDoesNotFit) {
  Graph graph({4, 4, 1});
  graph.add(Convolution{2, 3});
  try {
    graph.add(Convolution{2, 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("conv2d_1"), std::string::npos) << error.what();
  }
}

TEST(PoolBeforeRelu, SwapsTheTwoAndKeepsNamesParametersAndOrigins) {
  const Graph before = small_graph(), after = pool_before_relu(before);
  EXPECT_EQ(names(after),
            (std::vector<std::string>{"input", "conv2d", "max_pooling2d", "re_lu", "conv2d_1",
                                      "re_lu_1", "flatten", "dropout", "dense", "sigmoid"}));
  EXPECT_EQ(after.parameter_count(), before.parameter_count());
  EXPECT_EQ(after.nodes()[2].origin, 3);
  EXPECT_EQ(after.nodes()[7].origin, 7);  // dropout draws the same numbers
  EXPECT_EQ(after.nodes()[3].dst, before.nodes()[3].dst);
  EXPECT_EQ(after.back().dst, before.back().dst);
}

TEST(PoolBeforeRelu, LeavesAReluWithTwoReaders) {
  Graph graph({8, 8, 1});
  const int relu = graph.add(Relu{});
  graph.add(MaxPool{}, "pool", {relu});
  graph.add(Flatten{}, "other", {relu});
  EXPECT_EQ(names(pool_before_relu(graph)), names(graph));
}

TEST(WithoutRelus, LeavesThemOutAndKeepsTheRest) {
  const Graph before = small_graph(), after = without_relus(before);
  EXPECT_EQ(names(after), (std::vector<std::string>{"input", "conv2d", "max_pooling2d", "conv2d_1",
                                                    "flatten", "dropout", "dense", "sigmoid"}));
  EXPECT_EQ(after.parameter_count(), before.parameter_count());
  EXPECT_EQ(after.training_flops(), before.training_flops());
  EXPECT_EQ(after.nodes()[2].src, std::vector<int>{1});
  EXPECT_EQ(after.nodes()[5].origin, 7);  // dropout draws the same numbers
  EXPECT_EQ(after.back().dst, before.back().dst);
}

TEST(WithoutRelus, JoinsWhatReadsAReluToWhatItReads) {
  Graph graph({8, 8, 3});
  const int stem = graph.add(Convolution{4, 3, 1, Padding::same}, "stem");
  const int first = graph.add(Relu{});
  const int second = graph.add(Relu{});
  graph.add(Convolution{4, 3, 1, Padding::same}, "branch", {first});
  graph.add(Add{}, "sum", {stem, second, 4});
  const Graph after = with_frozen(without_relus(graph), std::vector<std::string>{"stem"});
  EXPECT_EQ(names(after), (std::vector<std::string>{"input", "stem", "branch", "sum"}));
  EXPECT_EQ(after.nodes()[2].src, std::vector<int>{1});
  EXPECT_EQ(after.nodes()[3].src, (std::vector<int>{1, 1, 2}));
  EXPECT_TRUE(without_relus(after).nodes()[1].frozen);
}

TEST(LayOut, RunsBackwardsInAlignedRanges) {
  const compute::ParameterLayout layout = compute::lay_out(small_graph(), DType::f32);
  const auto& p = layout.parameters;
  ASSERT_EQ(p.size(), 6u);
  EXPECT_EQ(p[0].name, "conv2d/kernel");
  EXPECT_EQ(p[0].count, 3u * 3 * 3 * 4);
  EXPECT_EQ(p.back().name, "dense/bias");
  EXPECT_EQ(p.back().range, (Range{0, 1}));  // the last layer lies first
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i].range.begin % 16, 0u) << p[i].name;
    EXPECT_EQ(p[i].range.size(), p[i].count);
    if (i > 0) {
      EXPECT_GE(p[i - 1].range.begin, p[i].range.end);
    }
  }
  EXPECT_GE(layout.arena_size, p[0].range.end);
  EXPECT_EQ(compute::lay_out(small_graph(), DType::f64).parameters[0].range.begin % 8, 0u);
}

}  // namespace
}  // namespace cputrain::model
