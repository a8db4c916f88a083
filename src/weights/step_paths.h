#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "model/graph.h"

namespace cputrain::weights {

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
  std::string word{};  ///< names an activation ("relu"), or what is of pixels or foreign
  /// Where the weights of a layer of Keras lie in its file: "layers/conv2d_1".
  std::string group{};
  bool scale = true, center = true;  ///< a normalization of Keras has a gamma, a beta
  bool global = false;               ///< a pool over the whole image
  std::optional<Sides> size{}, stride{};
  std::optional<model::Padding> padding{};
  std::array<int, 4> zeros{};  ///< a zero_pad's: top, bottom, left, right
  std::optional<int> groups{};
  std::optional<double> epsilon{};
  std::string axis{};      ///< a normalization's, where it is not the last one: "1"
  std::string unlike{};    ///< what it does that no layer here can: "dilation_rate 2x2"
  std::vector<int> src{};  ///< earlier steps; empty: the input, or not known
  Shape dst{};             ///< known for a network here alone
};
using NetworkSteps = std::vector<NetworkStep>;

/// A step for each node, by the same number.
NetworkSteps network_steps(const model::Graph&);

/// A step between two layers with weights. Zeros around the image are a part of the max pool that
/// reads them.
struct PathStep {
  const NetworkStep* step = nullptr;
  std::array<int, 4> zeros{};  ///< top, bottom, left, right
};

/// What stands between a layer and the nearest one before it that has weights, joins others, or is
/// the image. Steps that change nothing are left out.
struct StepPath {
  int end = -1;  ///< the layer before; -1: not known
  std::vector<PathStep> steps{};
  std::array<int, 4> zeros{};  ///< around the image that the last of the steps makes
};

/// The path to step `from`, which its reader reads. Rectifiers and SiLU come before zeros, the
/// former before max pools as well: numbers are the same in either order.
StepPath path_to(const NetworkSteps&, int from);

/// Whether two steps behind images of one shape (`before`, of a network here) make the same.
/// `positive`: no number in these is known to be below 0, where a max pool takes zeros around the
/// image for what its own padding is.
bool alike(const PathStep& theirs, const PathStep& ours, const Shape& before, bool positive);

/// The same for the windows of two convolutions: which pixels they read. Strides must be known.
bool same_windows(const NetworkStep& theirs, const std::array<int, 4>& their_zeros,
                  const NetworkStep& ours, const std::array<int, 4>& our_zeros,
                  const Shape& before);

/// "relu then max_pool of 2 (stride 2, valid)"; "nothing" where there is none.
std::string text_of(const StepPath&);

/// "2", or "2x1" where they differ.
std::string sides_text(const Sides&);

/// "same", or "valid behind zeros 3,3,3,3".
std::string padding_text(const NetworkStep&, const std::array<int, 4>& zeros);

}  // namespace cputrain::weights
