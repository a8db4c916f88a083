#pragma once

#include "compute/selftest/layer_plans.h"
#include "compute/selftest_case.h"

/// What tests of backends share with `selftest`: programs that are driven through the contracts.
namespace cputrain::testing {

using compute::relative_distance;
using selftest::make_images;
using selftest::Outcome;
using selftest::Samples;
using selftest::Trial;
using selftest::trial_weights;
using selftest::WeightSource;

/// Adds layers, each on top of the one before it.
template <class... Layers>
void add_layers(model::Graph& graph, const Layers&... layers) {
  (graph.add(layers), ...);
}

template <class... Layers>
model::Graph graph_of(const Shape& image, const Layers&... layers) {
  model::Graph graph(image);
  add_layers(graph, layers...);
  return graph;
}

constexpr int kTrialClasses = 3;

/// A network with these layers and a dense one behind them.
template <class... Layers>
model::Graph classifier_of(const Shape& image, const Layers&... layers) {
  return graph_of(image, layers..., model::Flatten{}, model::Dense{kTrialClasses},
                  model::SoftmaxCrossEntropy{});
}

}  // namespace cputrain::testing
