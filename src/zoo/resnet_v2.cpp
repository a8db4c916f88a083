#include "zoo/networks.h"

namespace cputrain::zoo {
namespace {

constexpr model::BatchNorm kNorm{.epsilon = 1.001e-5f, .momentum = 0.99f};

/// Where a residual block stands in its stack.
struct Block {
  int filters;
  int stride;
  bool projects;  ///< the first one: its shortcut is a convolution of the activated input
};

/// BatchNorm and ReLU behind the last layer; returns the ReLU.
int add_activation(model::Graph& graph, const std::string& name) {
  graph.add(kNorm, name + "_bn");
  return graph.add(model::Relu{}, name + "_relu");
}

int add_shortcut(model::Graph& graph, const Block& block, const std::string& name, int src,
                 int activated) {
  if (block.projects) {
    return graph.add(
        model::Convolution{.filters = 4 * block.filters, .kernel = 1, .stride = block.stride},
        name + "_0_conv", {activated});
  }
  if (block.stride == 1) return src;
  return graph.add(model::MaxPool{.size = 1, .stride = block.stride}, name + "_0_pool", {src});
}

void add_block(model::Graph& graph, const Block& block, const std::string& name) {
  const int src = static_cast<int>(graph.nodes().size()) - 1;
  const int activated = add_activation(graph, name + "_preact");
  const int shortcut = add_shortcut(graph, block, name, src, activated);
  graph.add(model::Convolution{.filters = block.filters, .kernel = 1, .bias = false},
            name + "_1_conv", {activated});
  add_activation(graph, name + "_1");
  graph.add(model::ZeroPad{1, 1, 1, 1}, name + "_2_pad");
  graph.add(
      model::Convolution{
          .filters = block.filters, .kernel = 3, .stride = block.stride, .bias = false},
      name + "_2_conv");
  add_activation(graph, name + "_2");
  const int residual =
      graph.add(model::Convolution{.filters = 4 * block.filters, .kernel = 1}, name + "_3_conv");
  graph.add(model::Add{}, name + "_out", {shortcut, residual});
}

void add_stack(model::Graph& graph, int filters, int blocks, int last_stride,
               const std::string& name) {
  for (int i = 1; i <= blocks; ++i) {
    const int stride = i == blocks ? last_stride : 1;
    add_block(graph, {filters, stride, i == 1}, name + "_block" + std::to_string(i));
  }
}

}  // namespace

model::Graph resnet_v2(Shape image, int classes, const StackDepths& depths) {
  model::Graph graph(image);
  graph.add(model::ZeroPad{3, 3, 3, 3}, "conv1_pad");
  graph.add(model::Convolution{.filters = 64, .kernel = 7, .stride = 2}, "conv1_conv");
  graph.add(model::ZeroPad{1, 1, 1, 1}, "pool1_pad");
  graph.add(model::MaxPool{.size = 3, .stride = 2}, "pool1_pool");
  add_stack(graph, 64, depths.conv2, 2, "conv2");
  add_stack(graph, 128, depths.conv3, 2, "conv3");
  add_stack(graph, 256, depths.conv4, 2, "conv4");
  add_stack(graph, 512, depths.conv5, 1, "conv5");
  add_activation(graph, "post");
  graph.add(model::GlobalAveragePool{}, "avg_pool");
  graph.add(model::Dense{classes}, "predictions");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

}  // namespace cputrain::zoo
