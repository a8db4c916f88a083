#include "model/layer_patterns.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/refusal.h"

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
  EXPECT_EQ(layers_matching(g, Names{"*10"}), Names{"conv10"});
  EXPECT_EQ(layers_matching(g, Names{"c*v*0"}), Names{"conv10"});
}

TEST(LayerPatterns, WordsOfFineTuning) {
  const Graph g = graph();
  EXPECT_EQ(layers_matching(g, Names{"all-but-head"}), (Names{"conv1", "conv10"}));
  EXPECT_EQ(layers_matching(g, Names{"until=conv1_relu"}), Names{"conv1"});
  EXPECT_EQ(layers_matching(g, Names{"until=flat"}), (Names{"conv1", "conv10"}));
  EXPECT_EQ(layers_matching(g, Names{"until=conv1", "head"}), (Names{"conv1", "head"}));
  EXPECT_TRUE(layers_matching(g, Names{"none"}).empty());
}

TEST(LayerPatterns, UntilABlockIsUntilItsLastLayer) {
  Graph g({8, 8, 3});
  g.add(Convolution{2, 1}, "blocks.1.conv");
  g.add(Convolution{2, 1}, "blocks.1.1.conv");
  g.add(Convolution{2, 1}, "blocks.10.conv");
  g.add(GlobalAveragePool{}, "pool");
  g.add(Dense{3}, "head");
  g.add(SoftmaxCrossEntropy{});
  EXPECT_EQ(layers_matching(g, Names{"until=blocks.1"}),
            (Names{"blocks.1.conv", "blocks.1.1.conv"}));
  EXPECT_EQ(layers_matching(g, Names{"until=blocks"}).size(), 3u);
  EXPECT_THROW(layers_matching(g, Names{"until=block"}), Error);
}

/// Normalization behind the last kernel speaks of the classes, too.
TEST(LayerPatterns, WhatMakesTheOutputsIsTheHead) {
  Graph g({4, 4, 3});
  g.add(Convolution{2, 3}, "conv");
  g.add(BatchNorm{}, "norm");
  g.add(GlobalAveragePool{}, "pool");
  g.add(Dense{3}, "dense");
  g.add(BatchNorm{}, "last_norm");
  g.add(SoftmaxCrossEntropy{});
  EXPECT_EQ(head_layers(g), (Names{"dense", "last_norm"}));
  EXPECT_EQ(backbone_layers(g), (Names{"conv", "norm"}));
  EXPECT_EQ(head_layers(graph()), Names{"head"});
}

TEST(LayerPatterns, ThatMeanNothingAreNamed) {
  for (const char* pattern : {"conv2", "flat", "c*2", "conv1_*", "until=conv2", "until=", ""}) {
    const std::string text = testing::refused(ExitCode::usage, [&] {
      layers_matching(graph(), Names{"head", pattern});
    });
    EXPECT_NE(text.find(pattern), std::string::npos);
  }
}

}  // namespace
}  // namespace cputrain::model
