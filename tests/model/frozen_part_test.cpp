#include "model/layer_patterns.h"

#include <gtest/gtest.h>

#include "model/rewrite.h"

namespace cputrain::model {
namespace {

using Names = std::vector<std::string>;
using Cuts = std::vector<int>;

Graph residual() {
  Graph graph({8, 8, 3});
  graph.add(Convolution{4, 3, 1, Padding::same}, "stem");  // 1
  graph.add(Convolution{4, 3, 1, Padding::same}, "body");  // 2
  graph.add(Add{}, "add", {1, 2});                         // 3
  graph.add(BatchNorm{}, "norm");                          // 4
  graph.add(GlobalAveragePool{}, "pool");                  // 5
  graph.add(Dropout{0.5f}, "dropout");                     // 6
  graph.add(Dense{2}, "head");                             // 7
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

TEST(FrozenPart, EndsWhereSomethingLearnsOrIsDrawn) {
  const Graph graph = residual();
  EXPECT_EQ(frozen_cuts(graph), Cuts{});
  EXPECT_EQ(frozen_cuts(with_frozen(graph, Names{"stem"})), Cuts{1});
  // Behind the body the stem's output is still needed.
  EXPECT_EQ(frozen_cuts(with_frozen(graph, Names{"stem", "body"})), (Cuts{1, 3}));
  const Names backbone{"stem", "body", "norm"};
  EXPECT_EQ(frozen_cuts(with_frozen(graph, backbone)), (Cuts{1, 3, 4, 5}));
  EXPECT_EQ(frozen_cuts(with_dropout(with_frozen(graph, backbone), 0)), (Cuts{1, 3, 4, 5, 6}));
  EXPECT_EQ(frozen_cuts(with_frozen(graph, Names{"body"})), Cuts{});
}

TEST(FrozenPart, ShareOfWork) {
  const Graph graph = residual();
  const double stem = 64 * 9 * 3 * 4, body = 64 * 9 * 4 * 4, head = 8;
  EXPECT_DOUBLE_EQ(share_of_work(graph, 1), stem / (stem + body + head));
  EXPECT_DOUBLE_EQ(share_of_work(graph, 5), (stem + body) / (stem + body + head));
}

}  // namespace
}  // namespace cputrain::model
