#include "model/layer_patterns.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cputrain::model {
namespace {

Graph graph() {
  Graph graph({8, 8, 3});
  graph.add(Convolution{2, 3}, "conv1");
  graph.add(Relu{}, "conv1_relu");
  graph.add(Convolution{2, 3}, "conv10");
  graph.add(Flatten{}, "flat");
  graph.add(Dense{1}, "head");
  graph.add(SigmoidCrossEntropy{});
  return graph;
}

using Names = std::vector<std::string>;

TEST(LayerPatterns, MeanWholeNamesOrBeginnings) {
  const Graph g = graph();
  EXPECT_EQ(layers_matching(g, Names{"conv1"}), Names{"conv1"});
  EXPECT_EQ(layers_matching(g, Names{"conv1*"}),
            (Names{"conv1", "conv10"}));  // no ReLU: no weights
  EXPECT_EQ(layers_matching(g, Names{"head", "conv10", "conv1*"}),
            (Names{"conv1", "conv10", "head"}));
  EXPECT_EQ(layers_matching(g, Names{"*"}).size(), 3u);
}

TEST(LayerPatterns, ThatMeanNothingAreNamed) {
  for (const char* pattern : {"conv2", "flat", "c*1", "conv1_*", ""}) {
    try {
      layers_matching(graph(), Names{"head", pattern});
      FAIL() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(pattern), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cputrain::model
