#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/reference/reference_backend.h"
#include "model/graph.h"
#include "tests/backends/trial.h"

namespace cputrain::testing {

/// A small network around one layer, in one shape.
struct LayerCase {
  std::string name;
  Shape image;
  std::vector<model::Layer> layers;
  int classes = 3;
  int images = 3;
  bool large = false;  ///< for the sake of caches
};

/// Every layer, in many shapes. A convolution stands before the layer (so that its source's
/// gradient shows in that convolution's weights) and a dense layer with a loss behind it.
std::vector<LayerCase> layer_cases();
model::Graph build(const LayerCase&);
template <class Kind>
bool has(const LayerCase& c) {
  return std::ranges::any_of(
      c.layers, [](const model::Layer& layer) { return std::holds_alternative<Kind>(layer); });
}
/// Small differences stay small: neither ReLUs, whose gradient jumps, nor windows with winners.
inline bool smooth(const LayerCase& c) {
  return std::ranges::none_of(c.layers, [](const auto& l) { return facts_of(l).has_kinks; });
}

/// What is run of a case's network: a step of training, or the loss alone.
enum class Run { step, loss };
/// On images made from `seed`.
Outcome outcome_on(compute::Backend&, const LayerCase&, std::uint64_t seed, Run);
/// What plain loops in double make of it, run once however often it is asked for.
const Outcome& outcome_in_double(const LayerCase&, std::uint64_t seed, Run,
                                 reference::Factors = reference::Factors::as_they_are);

struct Distance {
  std::string tensor;
  double relative;
};
/// Distances of the loss, the probabilities and every gradient.
std::vector<Distance> distances(const LayerCase&, const Outcome& actual, const Outcome& expected);

}  // namespace cputrain::testing
