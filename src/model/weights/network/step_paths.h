#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/weights/network/network_steps.h"

namespace cputrain::model {

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

/// The path to step `from`, which its reader reads. ReLU, ReLU6 and SiLU come before zeros, the
/// first two before max pools as well: numbers are the same in either order.
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

}  // namespace cputrain::model
