#pragma once

#include <optional>
#include <string>

#include "model/graph.h"

/// Convolutions with batch normalization, of which most of the newer networks are made.
namespace cputrain::zoo {

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
