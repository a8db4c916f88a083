#include "compute/graph_walk.h"

#include <gtest/gtest.h>

namespace cputrain::compute {
namespace {

/// A map is known by a number.
using Walk = GraphWalk<int>;

void skip_to(Walk& walk, const std::string& name) {
  while (walk.node().name != name) walk.advance();
}

/// Input, two convolutions with a ReLU between, a flatten and a dense layer.
model::Graph chain() {
  model::Graph graph({9, 9, 3});
  graph.add(model::Convolution{.filters = 4, .kernel = 3}, "first");
  graph.add(model::Relu{}, "relu");
  graph.add(model::Convolution{.filters = 4, .kernel = 3}, "second");
  graph.add(model::Flatten{}, "flat");
  graph.add(model::Dense{2}, "dense");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

TEST(GraphWalk, AStepInPlaceLeavesItsMapToTheNextReader) {
  const model::Graph graph = chain();
  Walk walk(graph);
  walk.place(10, 0);
  skip_to(walk, "first");
  EXPECT_EQ(walk.read(walk.input(), 1).map, 10);
  walk.place(11, 1);
  EXPECT_NE(walk.only_next_is<model::Relu>(), nullptr);
  EXPECT_EQ(walk.only_next_is<model::Convolution>(), nullptr);
  walk.advance();
  const TrackedMap<int>& changed = walk.change_in_place(2);
  EXPECT_EQ(changed.map, 11);
  EXPECT_TRUE(changed.diff_changes);
  EXPECT_EQ(changed.unread, 1);
  EXPECT_EQ(changed.producer, 1);
  EXPECT_EQ(changed.last_touch, 2);
  walk.advance();
  const Source<int> src = walk.read(walk.input(), 3);
  EXPECT_EQ(src.map, 11);
  EXPECT_FALSE(src.adds);
}

TEST(GraphWalk, AFlattenedMapIsAVectorByItsShapeAlone) {
  const model::Graph graph = chain();
  Walk walk(graph);
  walk.place(10, 0);
  skip_to(walk, "second");
  walk.place(12, 2);
  EXPECT_EQ(walk.newest().unread, 1);  // the dense layer, beyond the flatten
  walk.advance();
  EXPECT_EQ(walk.src_shape(), (Shape{5, 5, 4}));
  walk.flatten();
  walk.advance();
  EXPECT_TRUE(walk.reads_flattened());
  EXPECT_EQ(walk.input().map, 12);
  walk.place(13, 3);
  walk.advance();
  EXPECT_FALSE(walk.reads_flattened());
  walk.advance();
  EXPECT_TRUE(walk.ended());
}

/// A map that three steps read, one of them twice and one beyond a flatten.
TEST(GraphWalk, EarlierReadersAddToTheGradientOfLaterOnes) {
  model::Graph graph({1, 1, 3});
  const int map = graph.add(model::Dense{4}, "map");
  const int relu = graph.add(model::Relu{}, "relu", {map});
  const int flat = graph.add(model::Flatten{}, "flat", {map});
  const int left = graph.add(model::Dense{4}, "left", {flat});
  graph.add(model::Add{}, "sum", {map, map, relu, left});
  graph.add(model::SoftmaxCrossEntropy{});
  Walk walk(graph);
  walk.place(10, 0);
  walk.advance();
  walk.place(11, 1);
  EXPECT_EQ(walk.newest().unread, 4);
  EXPECT_TRUE(walk.newest().shared);

  skip_to(walk, "relu");  // it changes a copy
  EXPECT_TRUE(walk.read(walk.input(), 2).adds);
  EXPECT_EQ(walk.input().last_touch, 2);
  walk.place(12, 2);
  EXPECT_EQ(walk.change_in_place(3).map, 12);
  EXPECT_EQ(walk.newest().unread, 1);

  skip_to(walk, "flat");
  walk.flatten();
  EXPECT_FALSE((walk.advance(), walk.reads_flattened()));  // it was a vector already
  EXPECT_TRUE(walk.read(walk.input(), 4).adds);
  walk.place(13, 4);

  skip_to(walk, "sum");
  EXPECT_EQ(walk.input_index(0), walk.input_index(1));
  EXPECT_TRUE(walk.read(walk.input(0), 5).adds);
  EXPECT_FALSE(walk.read(walk.input(1), 5).adds);  // the last one writes it
  EXPECT_FALSE(walk.read(walk.input(2), 5).adds);
  EXPECT_EQ(walk.input(3).map, 13);
  EXPECT_EQ(walk.output_of(map).last_touch, 5);
}

}  // namespace
}  // namespace cputrain::compute
