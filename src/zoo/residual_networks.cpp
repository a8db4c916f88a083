// Networks of residual blocks as torchvision has them. Layers have the names of its modules.

#include "zoo/networks.h"

namespace cputrain::zoo {
namespace {

/// He et al.'s, arXiv 1512.03385, with weight decay of 0.0001 as a penalty.
constexpr Style kResNet{.norm = {.epsilon = 1e-5f, .momentum = 0.9f},
                        .padding = model::Padding::half,
                        .init = model::Initializer::he_normal_out,
                        .l2 = 5e-5f};

/// A residual block: where it stands, and what its convolutions have.
struct ResidualBlock {
  int filters, stride;
  bool wide;  ///< a bottleneck, with four times the filters at its end
  int outputs() const { return wide ? 4 * filters : filters; }
};

/// What is added to the block's output: its input, in another shape where the block changes it.
int add_identity_or_projection(model::Graph& graph, const ResidualBlock& block,
                               const std::string& name, int src) {
  const int channels = graph.nodes()[static_cast<std::size_t>(src)].dst.channels;
  if (block.stride == 1 && channels == block.outputs()) return src;
  return add_normalised(graph, kResNet, {block.outputs(), 1, block.stride},
                        {name + ".downsample.0", name + ".downsample.1"}, src);
}

void add_residual_block(model::Graph& graph, const ResidualBlock& block, const std::string& name) {
  const int src = last_of(graph);
  int layer = 1;
  const auto convolve = [&](const Filters& filters) {
    const std::string number = std::to_string(layer++);
    add_normalised(graph, kResNet, filters, {name + ".conv" + number, name + ".bn" + number});
    return number;
  };
  const auto activated = [&](const Filters& filters) {
    graph.add(model::Relu{}, name + ".relu" + convolve(filters));
  };
  // The stride is the 3x3 convolution's, as in torchvision (version 1.5).
  if (block.wide) {
    activated({block.filters, 1});
    activated({block.filters, 3, block.stride});
    convolve({block.outputs(), 1});
  } else {
    activated({block.filters, 3, block.stride});
    convolve({block.outputs(), 3});
  }
  const int residual = last_of(graph);
  const int shortcut = add_identity_or_projection(graph, block, name, src);
  graph.add(model::Add{}, name + ".add", {residual, shortcut});
  graph.add(model::Relu{}, name + ".relu");
}

}  // namespace

model::Graph resnet(Shape image, int classes, const StackDepths& depths, bool wide) {
  model::Graph graph(image, model::normalized(model::kImageNetMean, model::kImageNetDeviation));
  add_normalised(graph, kResNet, {64, 7, 2}, {"conv1", "bn1"});
  graph.add(model::Relu{}, "relu");
  graph.add(model::MaxPool{3, 2, model::Padding::half}, "maxpool");
  int stack = 0;
  for (const int blocks : {depths.conv2, depths.conv3, depths.conv4, depths.conv5}) {
    for (int i = 0; i < blocks; ++i) {
      const int stride = stack > 0 && i == 0 ? 2 : 1;
      add_residual_block(graph, {64 << stack, stride, wide},
                         "layer" + std::to_string(stack + 1) + "." + std::to_string(i));
    }
    ++stack;
  }
  graph.add(model::GlobalAveragePool{}, "avgpool");
  add_classifier(graph, classes, "fc", kResNet, model::Initializer::uniform_in);
  return graph;
}

}  // namespace cputrain::zoo
