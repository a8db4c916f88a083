#pragma once

#include "model/graph.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Small networks with branches, on a backend beside plain loops in double.
namespace cputrain::testing::agreement {

inline constexpr Shape kImage{10, 9, 3};
inline constexpr int kClasses = 3, kImages = 4;

inline void add_head(model::Graph& graph) {
  add_layers(graph, model::GlobalAveragePool{}, model::Dense{kClasses},
             model::SoftmaxCrossEntropy{});
}

inline model::Convolution same(int filters, int kernel = 3) {
  return {.filters = filters, .kernel = kernel, .padding = model::Padding::same};
}

/// A training step has the loss and the gradients of `reference`, or the backend refuses the graph.
///
/// Rounding that turns a sign before a ReLU moves gradients by some 1e-3; images of one of a
/// dozen seeds go without. A mistake shows with any of them.
void expect_agreement(const BackendUnderTest&, const model::Graph&);

}  // namespace cputrain::testing::agreement
