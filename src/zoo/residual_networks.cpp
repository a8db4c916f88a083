#include "zoo/networks.h"

// Networks whose blocks read what earlier blocks made: residual ones, and DenseNet.
namespace cputrain::zoo {
namespace {

/// He et al.'s, arXiv 1512.03385, with weight decay of 0.0001 as a penalty.
constexpr Style kResNet{.norm = {.epsilon = 1e-5f, .momentum = 0.9f},
                        .padding = model::Padding::half,
                        .init = model::Initializer::he_normal_out,
                        .l2 = 5e-5f};

/// What is added to the block's output: its input, in another shape where the block changes it.
int add_identity_or_projection(model::Graph& graph, int outputs, int stride,
                               const std::string& name, int src) {
  const int channels = graph.nodes()[static_cast<std::size_t>(src)].dst.channels;
  if (stride == 1 && channels == outputs) return src;
  return add_normalised(graph, kResNet, {outputs, 1, stride},
                        {name + ".downsample.0", name + ".downsample.1"}, src);
}

/// `wide`: a bottleneck, with four times the filters at its end.
void add_residual_block(model::Graph& graph, int filters, int stride, bool wide,
                        const std::string& name) {
  const int src = last_of(graph), outputs = wide ? 4 * filters : filters;
  int layer = 1;
  const auto convolve = [&](const Filters& of) {
    const std::string number = std::to_string(layer++);
    add_normalised(graph, kResNet, of, {name + ".conv" + number, name + ".bn" + number});
    return number;
  };
  const auto activated = [&](const Filters& of) {
    graph.add(model::Relu{}, name + ".relu" + convolve(of));
  };
  // The stride is the 3x3 convolution's, as in torchvision (version 1.5).
  if (wide) activated({filters, 1});
  activated({filters, 3, stride});
  convolve({outputs, wide ? 1 : 3});
  const int residual = last_of(graph);
  const int shortcut = add_identity_or_projection(graph, outputs, stride, name, src);
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
  for (const int blocks : depths) {
    for (int i = 0; i < blocks; ++i) {
      const int stride = stack > 0 && i == 0 ? 2 : 1;
      add_residual_block(graph, 64 << stack, stride, wide,
                         "layer" + std::to_string(stack + 1) + "." + std::to_string(i));
    }
    ++stack;
  }
  graph.add(model::GlobalAveragePool{}, "avgpool");
  add_classifier(graph, classes, "fc", kResNet, model::Initializer::uniform_in);
  return graph;
}

namespace {

constexpr model::BatchNorm kNorm{.epsilon = 1.001e-5f, .momentum = 0.99f};

/// BatchNorm and ReLU behind the last layer; returns the ReLU.
int add_activation(model::Graph& graph, const std::string& name) {
  graph.add(kNorm, name + "_bn");
  return graph.add(model::Relu{}, name + "_relu");
}

/// `projects`: the first one of a stack, whose shortcut is a convolution of the activated input.
void add_block(model::Graph& graph, int filters, int stride, bool projects,
               const std::string& name) {
  const int src = last_of(graph);
  const int activated = add_activation(graph, name + "_preact");
  int shortcut = src;
  if (projects) {
    shortcut = graph.add(model::Convolution{.filters = 4 * filters, .kernel = 1, .stride = stride},
                         name + "_0_conv", {activated});
  } else if (stride != 1) {
    shortcut = graph.add(model::MaxPool{.size = 1, .stride = stride}, name + "_0_pool", {src});
  }
  graph.add(model::Convolution{.filters = filters, .kernel = 1, .bias = false}, name + "_1_conv",
            {activated});
  add_activation(graph, name + "_1");
  graph.add(model::ZeroPad{1, 1, 1, 1}, name + "_2_pad");
  graph.add(model::Convolution{.filters = filters, .kernel = 3, .stride = stride, .bias = false},
            name + "_2_conv");
  add_activation(graph, name + "_2");
  const int residual =
      graph.add(model::Convolution{.filters = 4 * filters, .kernel = 1}, name + "_3_conv");
  graph.add(model::Add{}, name + "_out", {shortcut, residual});
}

void add_stack(model::Graph& graph, int filters, int blocks, int last_stride,
               const std::string& name) {
  for (int i = 1; i <= blocks; ++i) {
    const int stride = i == blocks ? last_stride : 1;
    add_block(graph, filters, stride, i == 1, name + "_block" + std::to_string(i));
  }
}

}  // namespace

model::Graph resnet_v2(Shape image, int classes, const StackDepths& depths) {
  model::Graph graph(image);
  graph.add(model::ZeroPad{3, 3, 3, 3}, "conv1_pad");
  graph.add(model::Convolution{.filters = 64, .kernel = 7, .stride = 2}, "conv1_conv");
  graph.add(model::ZeroPad{1, 1, 1, 1}, "pool1_pad");
  graph.add(model::MaxPool{.size = 3, .stride = 2}, "pool1_pool");
  add_stack(graph, 64, depths[0], 2, "conv2");
  add_stack(graph, 128, depths[1], 2, "conv3");
  add_stack(graph, 256, depths[2], 2, "conv4");
  add_stack(graph, 512, depths[3], 1, "conv5");
  add_activation(graph, "post");
  graph.add(model::GlobalAveragePool{}, "avg_pool");
  graph.add(model::Dense{classes}, "predictions");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

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
