#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/graph.h"
#include "model/normalization.h"

/// The built-in networks, each a function of the image's size and the number of classes. Layers
/// have the names that the sources' Keras programs give them.
namespace cputrain::zoo {

/// The Dogs-vs-Cats CNN of the paper (its Table I): 13,217,985 parameters at 256x256x3 with two
/// classes. Padding, initial values and the order of classes are not stated there: Keras' defaults
/// and cat 0, dog 1. Two classes give one logit with a sigmoid, more give a softmax.
model::Graph dogcat(Shape image, int classes);

/// The CNN of seven layers with weights of the W&B report on iNaturalist subsets: 910,922
/// parameters at 299x299x3 with ten classes.
model::Graph nature7(Shape image, int classes);

/// The CNN of the Horovod post on potato chips: 7,942,658 parameters at 500x500x3 with two classes;
/// L2 0.0015 on all kernels but the last. No pool follows the first convolution.
model::Graph chips(Shape image, int classes);

/// Simonyan and Zisserman's configuration D (arXiv 1409.1556) as Keras has it, without dropout:
/// 138,357,544 parameters at 224x224x3 with 1000 classes.
model::Graph vgg16(Shape image, int classes);

/// Numbers of blocks in the four stacks of a residual network.
using StackDepths = std::array<int, 4>;

/// He et al.'s residual network with pre-activation (arXiv 1603.05027) as Keras' ResNet50V2 and its
/// deeper sisters have it: the stride sits in the last block of a stack, whose shortcut is a 1x1
/// max pool; the first pool reads zeros around the map, not minus infinity.
model::Graph resnet_v2(Shape image, int classes, const StackDepths&);

// What follows has the names of PyTorch's modules ("layer1.0.conv1"), so that an export in its
// layout is a state_dict of torchvision or timm. Weight decay is a penalty on kernels, which has
// the same gradients as PyTorch's.

/// He et al.'s residual network (arXiv 1512.03385) as torchvision has it. ResNet18 has 11,699,112
/// parameters with 1000 classes; `wide`, with bottlenecks, whose stride is that of the 3x3
/// convolution (version 1.5): ResNet50, 25,610,152.
model::Graph resnet(Shape image, int classes, const StackDepths&, bool wide);

/// Sandler et al.'s MobileNetV2 (arXiv 1801.04381) as torchvision has it: 3,538,984 parameters with
/// 1000 classes.
model::Graph mobilenet_v2(Shape image, int classes);

/// EfficientNet-Lite0 (Liu 2020; arXiv 1905.11946 without squeeze-and-excitation, ReLU6 for swish)
/// as TensorFlow's own program has it, `same` padding included, with timm's names: 4,694,024
/// parameters with 1000 classes, 4,652,008 of them learnt. Blocks are not skipped at random.
model::Graph efficientnet_lite0(Shape image, int classes);

/// Huang et al.'s DenseNet-121 (arXiv 1608.06993) as torchvision has it: 8,062,504 parameters with
/// 1000 classes.
model::Graph densenet121(Shape image, int classes);

// Convolutions with batch normalization, of which most of the newer networks are made.

/// What a network's convolutions have in common.
struct Style {
  model::BatchNorm norm;
  model::Padding padding;
  model::Initializer init;
  float l2;
};

struct Filters {
  int count, kernel, stride = 1, groups = 1;
};

/// Names of a convolution and of what follows it.
struct Names {
  std::string convolution, norm;
};

inline int last_of(const model::Graph& graph) { return static_cast<int>(graph.nodes().size()) - 1; }

/// As the style says, without a bias.
inline model::Convolution convolution_of(const Style& style, const Filters& filters) {
  return {.filters = filters.count,
          .kernel = filters.kernel,
          .stride = filters.stride,
          .padding = style.padding,
          .bias = false,
          .l2 = style.l2,
          .groups = filters.groups,
          .init = style.init};
}

/// A convolution of `src`, or of the last node, and its normalization, whose index this is.
inline int add_normalised(model::Graph& graph, const Style& style, const Filters& filters,
                          const Names& names, std::optional<int> src = {}) {
  graph.add(convolution_of(style, filters), names.convolution, {src.value_or(last_of(graph))});
  return graph.add(style.norm, names.norm);
}

/// The last dense layer, and its loss.
inline void add_classifier(model::Graph& graph, int classes, const std::string& name,
                           const Style& style, model::Initializer init) {
  graph.add(model::Dense{.units = classes, .l2 = style.l2, .init = init}, name);
  graph.add(model::SoftmaxCrossEntropy{});
}

}  // namespace cputrain::zoo
