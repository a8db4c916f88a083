#include "zoo/networks.h"

namespace cputrain::zoo {
namespace {

constexpr Style kDenseNet{.norm = {.epsilon = 1e-5f, .momentum = 0.9f},
                          .padding = model::Padding::half,
                          .init = model::Initializer::he_normal,
                          .l2 = 5e-5f};

/// Channels that a layer adds, and how many times as many its first convolution makes.
constexpr int kGrowth = 32, kWidening = 4;

/// Normalization and ReLU of `src`, and a convolution. They have torchvision's names: `place` is
/// what begins them, `number` what ends them.
void add_preactivated(model::Graph& graph, const Filters& filters, const std::string& place,
                      const std::string& number) {
  graph.add(kDenseNet.norm, place + ".norm" + number);
  graph.add(model::Relu{}, place + ".relu" + number);
  graph.add(convolution_of(kDenseNet, filters), place + ".conv" + number);
}

/// The last node's channels, and behind them those that the layer makes of them.
void add_dense_layer(model::Graph& graph, const std::string& name) {
  const int src = last_of(graph);
  add_preactivated(graph, {kWidening * kGrowth, 1}, name, "1");
  add_preactivated(graph, {kGrowth, 3}, name, "2");
  graph.add(model::Concat{}, name + ".cat", {src, last_of(graph)});
}

/// Halves the channels and both sides.
void add_transition(model::Graph& graph, const std::string& name) {
  add_preactivated(graph, {graph.back().dst.channels / 2, 1}, name, "");
  graph.add(model::AveragePool{2, 2}, name + ".pool");
}

}  // namespace

model::Graph densenet121(Shape image, int classes) {
  model::Graph graph(image, model::normalized(model::kImageNetMean, model::kImageNetDeviation));
  add_normalised(graph, kDenseNet, {2 * kGrowth, 7, 2}, {"features.conv0", "features.norm0"});
  graph.add(model::Relu{}, "features.relu0");
  graph.add(model::MaxPool{3, 2, model::Padding::half}, "features.pool0");
  int block = 0;
  for (const int layers : {6, 12, 24, 16}) {
    if (block > 0) add_transition(graph, "features.transition" + std::to_string(block));
    ++block;
    for (int layer = 1; layer <= layers; ++layer) {
      add_dense_layer(graph, "features.denseblock" + std::to_string(block) + ".denselayer" +
                                 std::to_string(layer));
    }
  }
  graph.add(kDenseNet.norm, "features.norm5");
  graph.add(model::Relu{}, "relu");
  graph.add(model::GlobalAveragePool{}, "avgpool");
  add_classifier(graph, classes, "classifier", kDenseNet, model::Initializer::uniform_in_only);
  return graph;
}

}  // namespace cputrain::zoo
