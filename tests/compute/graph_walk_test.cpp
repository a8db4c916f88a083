#include "compute/executor/graph_walk.h"

#include <gtest/gtest.h>

namespace cputrain::compute {
namespace {

/// Activations are known by a number here.
Activation known(int number) { return {.layout = {{1, 1, number}, 1}}; }
int number_of(const Activation& activation) { return activation.layout.shape.channels; }

void skip_to(GraphWalk& walk, const std::string& name) {
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

TEST(GraphWalk, AnOperatorInPlaceLeavesItsActivationToTheNextReader) {
  const model::Graph graph = chain();
  GraphWalk walk(graph);
  walk.place(known(10), 0);
  skip_to(walk, "first");
  EXPECT_EQ(number_of(walk.read(walk.input(), 1)), 10);
  walk.place(known(11), 1);
  EXPECT_NE(walk.only_next_is<model::Relu>(), nullptr);
  EXPECT_EQ(walk.only_next_is<model::Convolution>(), nullptr);
  walk.advance();
  const TrackedActivation& changed = walk.change_in_place(2);
  EXPECT_EQ(number_of(changed), 11);
  EXPECT_TRUE(changed.diff_changes);
  EXPECT_EQ(changed.unread, 1);
  EXPECT_EQ(changed.producer, 1);
  EXPECT_EQ(changed.last_touch, 2);
  walk.advance();
  const Source src = walk.read(walk.input(), 3);
  EXPECT_EQ(number_of(src), 11);
  EXPECT_FALSE(src.adds);
}

TEST(GraphWalk, AFlattenedMapIsAVectorByItsShapeAlone) {
  const model::Graph graph = chain();
  GraphWalk walk(graph);
  walk.place(known(10), 0);
  skip_to(walk, "second");
  walk.place(known(12), 2);
  EXPECT_EQ(walk.newest().unread, 1);  // the dense layer, beyond the flatten
  walk.advance();
  EXPECT_EQ(walk.src_shape(), (Shape{5, 5, 4}));
  walk.flatten();
  walk.advance();
  EXPECT_TRUE(walk.reads_flattened());
  EXPECT_EQ(number_of(walk.input()), 12);
  walk.place(known(13), 3);
  walk.advance();
  EXPECT_FALSE(walk.reads_flattened());
  walk.advance();
  EXPECT_TRUE(walk.ended());
}

/// What three operators read, one of them twice and one beyond a flatten.
TEST(GraphWalk, EarlierReadersAddToTheGradientOfLaterOnes) {
  model::Graph graph({1, 1, 3});
  const int map = graph.add(model::Dense{4}, "map");
  const int relu = graph.add(model::Relu{}, "relu", {map});
  const int flat = graph.add(model::Flatten{}, "flat", {map});
  const int left = graph.add(model::Dense{4}, "left", {flat});
  graph.add(model::Add{}, "sum", {map, map, relu, left});
  graph.add(model::SoftmaxCrossEntropy{});
  GraphWalk walk(graph);
  walk.place(known(10), 0);
  walk.advance();
  walk.place(known(11), 1);
  EXPECT_EQ(walk.newest().unread, 4);
  EXPECT_TRUE(walk.newest().shared);

  skip_to(walk, "relu");  // it changes a copy
  EXPECT_TRUE(walk.read(walk.input(), 2).adds);
  EXPECT_EQ(walk.input().last_touch, 2);
  walk.place(known(12), 2);
  EXPECT_EQ(number_of(walk.change_in_place(3)), 12);
  EXPECT_EQ(walk.newest().unread, 1);

  skip_to(walk, "flat");
  walk.flatten();
  EXPECT_FALSE((walk.advance(), walk.reads_flattened()));  // it was a vector already
  EXPECT_TRUE(walk.read(walk.input(), 4).adds);
  walk.place(known(13), 4);

  skip_to(walk, "sum");
  EXPECT_EQ(walk.input_index(0), walk.input_index(1));
  EXPECT_TRUE(walk.read(walk.input(0), 5).adds);
  EXPECT_FALSE(walk.read(walk.input(1), 5).adds);  // the last one writes it
  EXPECT_FALSE(walk.read(walk.input(2), 5).adds);
  EXPECT_EQ(number_of(walk.input(3)), 13);
  EXPECT_EQ(walk.output_of(map).last_touch, 5);
}

/// The sum of a map and of what dense layers make of it. The first of them adds to the map's
/// gradient, so its own must lie elsewhere; that of the second one is read before.
TEST(GraphWalk, ASumSharesNoGradientThatAReaderOfTheKeeperReads) {
  for (const int layers : {1, 2}) {
    model::Graph graph({1, 1, 3});
    const int map = graph.add(model::Dense{4}, "map");
    int made = map;
    for (int i = 0; i < layers; ++i) made = graph.add(model::Dense{4}, "", {made});
    graph.add(model::Add{}, "sum", {map, made});
    graph.add(model::SoftmaxCrossEntropy{});
    GraphWalk walk(graph);
    MemoryPlan memory;
    int op = 0;
    const auto place = [&] {
      Activation activation = known(4);
      activation.wants_diff = true;
      activation.diff = memory.add(16);
      walk.place(activation, op++);
    };
    place();
    skip_to(walk, "map");
    for (; walk.node().name != "sum"; walk.advance()) {
      walk.read(walk.input(), op);
      place();
    }
    const std::vector<std::size_t> inputs{walk.input_index(0), walk.input_index(1)};
    std::vector<Source> parts{walk.read(walk.input(0), op), walk.read(walk.input(1), op)};
    place();
    walk.share_gradient(memory, inputs, parts);
    EXPECT_TRUE(parts[0].shares_diff);
    EXPECT_EQ(parts[1].shares_diff, layers == 2);
  }
}

}  // namespace
}  // namespace cputrain::compute
