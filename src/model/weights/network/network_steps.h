#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "model/graph.h"

namespace cputrain::model {

/// Height and width.
using Sides = std::array<int, 2>;

/// What a step of a network does. `same`: it leaves numbers as they are when no training goes on,
/// or only lays them out otherwise (dropout, flatten).
enum class StepKind {
  input,
  weights,
  zero_pad,
  max_pool,
  average_pool,
  activation,
  add,
  concat,
  same,
  pixels,   ///< changes pixels in front of all weights, and is foreign elsewhere
  foreign,  ///< no layer here does it
  unknown
};

/// A layer as far as answers depend on it, of a network here or in Keras' words. What is empty is
/// not known.
struct NetworkStep {
  StepKind kind = StepKind::unknown;
  std::string name{};
  std::string word{};   ///< names an activation ("relu"), or what is of pixels or foreign
  std::string group{};  ///< of weights: where they lie in a file of Keras
  bool global = false;  ///< a pool over the whole image
  std::optional<Sides> size{}, stride{};
  std::optional<Padding> padding{};
  std::array<int, 4> zeros{};  ///< a zero_pad's: top, bottom, left, right
  std::optional<int> groups{};
  std::optional<double> epsilon{};
  std::optional<int> axis{};  ///< a batch normalization's, where it is not the last one
  std::string unlike{};       ///< what it does that no layer here can: "dilation_rate 2x2"
  std::vector<int> src{};     ///< earlier steps; empty: the input, or not known
  Shape dst{};                ///< of a network here alone
};
using NetworkSteps = std::vector<NetworkStep>;

/// A step for each node, by the same number.
NetworkSteps network_steps(const Graph&);

}  // namespace cputrain::model
