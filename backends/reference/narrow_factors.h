#pragma once

#include <vector>

#include "backends/reference/layers.h"

namespace cputrain::reference {

/// Rounded copies of what a convolution multiplies. The gradient of its bias adds rounded numbers,
/// too: a library that multiplies bf16 is given no others.
template <class T>
class NarrowFactors {
 public:
  /// The same place, reading copies that last until the next call.
  LayerArgs<T> round(const model::Convolution&, LayerArgs<T>);

 private:
  std::vector<T> src_, weights_, diff_dst_;
};

}  // namespace cputrain::reference
