#pragma once

#include "core/names.h"

namespace cputrain::data {

/// How an image comes to the size of the network's input. `bilinear`: as tf.image.resize does
/// (half-pixel centres, no smoothing); `nearest`: as Pillow's NEAREST, the default of Keras'
/// flow_from_directory.
enum class Resize { bilinear, nearest };
constexpr auto names(Resize) {
  return std::to_array<Name<Resize>>(
      {{Resize::bilinear, "bilinear"}, {Resize::nearest, "nearest"}});
}

}  // namespace cputrain::data
