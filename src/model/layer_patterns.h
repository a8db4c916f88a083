#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"

/// Which layers of a graph are what: those that a pattern names, the head, a beginning that is
/// frozen, and those that make the outputs.
namespace cputrain::model {

/// The pattern of all layers but those of head_layers().
inline constexpr std::string_view kAllButHead = "all-but-head";

/// Names of the layers with parameters that a pattern of --freeze means: a name, in which `*`
/// stands for any text; `until=LAYER`, all up to this one, or to the last layer of a block of that
/// name; `all-but-head`, all but those of head_layers(); `none`, none. Error(usage) where a pattern
/// means none, with the nearest name.
std::vector<std::string> layers_matching(const Graph&, std::span<const std::string> patterns);

/// The layers that make the outputs: the last one with a kernel, and batch normalization behind it.
std::vector<std::string> head_layers(const Graph&);
/// The layers with parameters that are none of these.
std::vector<std::string> backbone_layers(const Graph&);

/// The nodes at which the graph may be cut into a beginning that gives the same numbers for an
/// image in every pass (nothing in it learns, and nothing is drawn at random) and a rest that reads
/// this node alone of it. In the order of the graph; the image is none of them.
std::vector<int> frozen_cuts(const Graph&);

/// The part of the multiply-adds of a forward pass that are those of nodes up to `node`.
double share_of_work(const Graph&, int node);

/// Which parameters make the network's outputs, so that classes can be put into another order.
struct ClassOutputs {
  int count = 0;  ///< outputs of the network: 1 for two classes
  /// Those whose last extent counts the outputs: kernel and bias of the last layer that has one,
  /// and of batch normalization behind it. Empty where what lies between mixes channels or is read
  /// by others, too.
  std::vector<std::string> arrays;
  /// For a network with one output: those whose negation makes the probability of class 1 that of
  /// class 0. Empty where no negation does.
  std::vector<std::string> negated;
};

ClassOutputs class_outputs(const Graph&);

}  // namespace cputrain::model
