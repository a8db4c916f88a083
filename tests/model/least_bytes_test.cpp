#include "model/summary.h"

#include <gtest/gtest.h>

namespace cputrain::model {
namespace {

TEST(LeastBytes, CountsSourceDestinationAndWeightsOnce) {
  Graph graph({10, 10, 3});
  graph.add(Convolution{4, 3}, "first");  // 8 x 8 x 4, pooled to 4 x 4 x 4
  graph.add(Relu{}, "relu");
  graph.add(MaxPool{}, "pool");
  graph.add(ZeroPad{1, 1, 1, 1}, "zeros");
  graph.add(Convolution{8, 3, 1, Padding::valid, false}, "second");  // 4 x 4 x 8
  graph.add(MaxPool{}, "strip");
  graph.add(Flatten{}, "flat");
  graph.add(Dense{5}, "dense");
  auto bytes = least_bytes(graph, 4);
  // Bytes of the image, then numbers of 4 bytes.
  EXPECT_EQ(bytes["first"].each, 10 * 10 * 3 + 4 * (4 * 4 * 4));
  EXPECT_EQ(bytes["first"].fixed, 4 * (3 * 3 * 3 * 4 + 4));
  EXPECT_EQ(bytes["pool"].each, 0);
  // The zeros around the map are not in memory.
  EXPECT_EQ(bytes["second"].each, 4 * (4 * 4 * 4 + 2 * 2 * 8));
  EXPECT_EQ(bytes["second"].fixed, 4 * (3 * 3 * 4 * 8));
  EXPECT_EQ(bytes["dense"].each, 4 * (32 + 5));
  EXPECT_EQ(bytes["dense"].fixed, 4 * (32 * 5 + 5));
  EXPECT_EQ(least_bytes(graph, 8)["dense"].each, 8 * (32 + 5));
}

TEST(LeastBytes, APoolThatOthersReadBesideMovesTheMapItself) {
  Graph graph({8, 8, 3});
  const int wide = graph.add(Convolution{2, 3, 1, Padding::same}, "wide");
  graph.add(MaxPool{}, "pool", {wide});
  graph.add(Convolution{2, 3, 2, Padding::same}, "other", {wide});
  graph.add(Add{}, "sum", {2, 3});
  auto bytes = least_bytes(graph, 4);
  EXPECT_EQ(bytes["wide"].each, 8 * 8 * 3 + 4 * (8 * 8 * 2));
  EXPECT_EQ(bytes["pool"].each, 4 * (8 * 8 * 2 + 4 * 4 * 2));
  EXPECT_EQ(bytes["sum"].each, 4 * 3 * (4 * 4 * 2));
}

TEST(LeastBytes, KeptMapsAreThoseThatWeightsAreLearntFrom) {
  Graph graph({10, 10, 3});
  graph.add(Convolution{4, 3}, "first");  // reads the image
  graph.add(MaxPool{}, "pool");           // 4 x 4 x 4
  graph.add(Relu{}, "relu");
  graph.add(ZeroPad{1, 1, 1, 1}, "zeros");
  const int second = graph.add(Convolution{4, 3, 1, Padding::valid}, "second");  // 4 x 4 x 4
  graph.add(Convolution{8, 3}, "third", {second});                               // 2 x 2 x 8
  graph.add(Flatten{}, "flat");
  graph.add(Dense{5}, "dense");
  EXPECT_EQ(kept_numbers(graph), 4 * 4 * 4 + 4 * 4 * 4 + 2 * 2 * 8);
}

TEST(LeastBytes, AMapThatTwoReadIsKeptOnce) {
  Graph graph({8, 8, 3});
  const int map = graph.add(Convolution{2, 3, 1, Padding::same}, "map");
  const int a = graph.add(Convolution{2, 3, 1, Padding::same}, "a", {map});
  const int b = graph.add(Convolution{2, 1}, "b", {map});
  graph.add(Add{}, "sum", {a, b});
  EXPECT_EQ(kept_numbers(graph), 8 * 8 * 2);
}

}  // namespace
}  // namespace cputrain::model
