// Networks of inverted residuals: channels are widened, each is convolved, and they are narrowed.

#include "zoo/networks.h"

namespace cputrain::zoo {
namespace {

/// A row of a paper's table: so many blocks, the first with the stride.
struct Stage {
  int expansion, filters, blocks, stride, kernel;
};

/// Channels of the last node.
int channels_of(const model::Graph& graph) { return graph.back().dst.channels; }

void add_relu6(model::Graph& graph, const std::string& name) { graph.add(model::Relu6{}, name); }

/// Adds what the block reads, at node `src`, where the shape is the same.
void add_residual(model::Graph& graph, int src, const std::string& name) {
  if (graph.nodes()[static_cast<std::size_t>(src)].dst != graph.back().dst) return;
  graph.add(model::Add{}, name + ".add", {src, last_of(graph)});
}

constexpr Style kMobileNet{.norm = {.epsilon = 1e-5f, .momentum = 0.9f},
                           .padding = model::Padding::half,
                           .init = model::Initializer::he_normal_out,
                           .l2 = 2e-5f};

/// A convolution, its normalization and ReLU6, named as torchvision's Conv2dNormActivation.
void add_mobile_unit(model::Graph& graph, const Filters& filters, const std::string& name) {
  add_normalised(graph, kMobileNet, filters, {name + ".0", name + ".1"});
  add_relu6(graph, name + ".2");
}

void add_mobile_block(model::Graph& graph, const Stage& stage, int stride,
                      const std::string& name) {
  const int src = last_of(graph);
  const int wide = channels_of(graph) * stage.expansion;
  auto part = [&, next = 0]() mutable { return name + ".conv." + std::to_string(next++); };
  if (stage.expansion > 1) add_mobile_unit(graph, {wide, 1}, part());
  add_mobile_unit(graph, {wide, stage.kernel, stride, wide}, part());
  const std::string convolution = part();
  add_normalised(graph, kMobileNet, {stage.filters, 1}, {convolution, part()});
  if (stride == 1) add_residual(graph, src, name);
}

constexpr Style kEfficientNet{.norm = {.epsilon = 1e-3f, .momentum = 0.99f},
                              .padding = model::Padding::same,
                              .init = model::Initializer::he_normal_group,
                              .l2 = 5e-6f};

/// Layers have timm's names. Its first stage widens nothing, which moves the names by one.
void add_efficient_block(model::Graph& graph, const Stage& stage, int stride,
                         const std::string& name) {
  const int src = last_of(graph);
  const int wide = channels_of(graph) * stage.expansion;
  int next = 1;
  const auto add = [&](const char* convolution, const Filters& filters) {
    const std::string number = std::to_string(next++);
    add_normalised(graph, kEfficientNet, filters, {name + convolution, name + ".bn" + number});
    return number;
  };
  if (stage.expansion > 1) add_relu6(graph, name + ".act" + add(".conv_pw", {wide, 1}));
  add_relu6(graph, name + ".act" + add(".conv_dw", {wide, stage.kernel, stride, wide}));
  add(stage.expansion > 1 ? ".conv_pwl" : ".conv_pw", {stage.filters, 1});
  if (stride == 1) add_residual(graph, src, name);
}

}  // namespace

model::Graph mobilenet_v2(Shape image, int classes) {
  model::Graph graph(image, model::normalized(model::kImageNetMean, model::kImageNetDeviation));
  add_mobile_unit(graph, {32, 3, 2}, "features.0");
  int block = 1;
  for (const Stage& stage :
       {Stage{1, 16, 1, 1, 3}, Stage{6, 24, 2, 2, 3}, Stage{6, 32, 3, 2, 3}, Stage{6, 64, 4, 2, 3},
        Stage{6, 96, 3, 1, 3}, Stage{6, 160, 3, 2, 3}, Stage{6, 320, 1, 1, 3}}) {
    for (int i = 0; i < stage.blocks; ++i) {
      add_mobile_block(graph, stage, i == 0 ? stage.stride : 1,
                       "features." + std::to_string(block++));
    }
  }
  add_mobile_unit(graph, {1280, 1}, "features." + std::to_string(block));
  graph.add(model::GlobalAveragePool{}, "avgpool");
  graph.add(model::Dropout{0.2f}, "classifier.0");
  add_classifier(graph, classes, "classifier.1", kMobileNet, model::Initializer::normal_hundredth);
  return graph;
}

model::Graph efficientnet_lite0(Shape image, int classes) {
  model::Graph graph(image, model::normalized(0.5f, 0.5f));
  add_normalised(graph, kEfficientNet, {32, 3, 2}, {"conv_stem", "bn1"});
  add_relu6(graph, "act1");
  int number = 0;
  for (const Stage& stage :
       {Stage{1, 16, 1, 1, 3}, Stage{6, 24, 2, 2, 3}, Stage{6, 40, 2, 2, 5}, Stage{6, 80, 3, 2, 3},
        Stage{6, 112, 3, 1, 5}, Stage{6, 192, 4, 2, 5}, Stage{6, 320, 1, 1, 3}}) {
    const std::string name = "blocks." + std::to_string(number++) + ".";
    for (int i = 0; i < stage.blocks; ++i) {
      add_efficient_block(graph, stage, i == 0 ? stage.stride : 1, name + std::to_string(i));
    }
  }
  add_normalised(graph, kEfficientNet, {1280, 1}, {"conv_head", "bn2"});
  add_relu6(graph, "act2");
  graph.add(model::GlobalAveragePool{}, "global_pool");
  graph.add(model::Dropout{0.2f}, "dropout");
  add_classifier(graph, classes, "classifier", kEfficientNet, model::Initializer::uniform_out);
  return graph;
}

}  // namespace cputrain::zoo
