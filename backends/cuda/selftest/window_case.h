#pragma once

#include <fmt/format.h>

#include <string>

#include "backends/cuda/kernels/shapes.h"
#include "model/layer.h"

namespace cputrain::cuda {

/// A window that slides over a map, as in a model.
struct WindowCase {
  int images, height, width, channels, outputs, size, stride;
  model::Padding padding = model::Padding::same;

  WindowShape window() const {
    const auto side = [&](int n) {
      const model::PadAmount pad = model::pad_amount(padding, n, size, stride);
      return (n + pad.before + pad.after - size) / stride + 1;
    };
    return {images,
            {height, width, padded_channels(channels)},
            {side(height), side(width), padded_channels(outputs)},
            size,
            stride,
            model::pad_amount(padding, height, size, stride).before,
            model::pad_amount(padding, width, size, stride).before};
  }
};

/// "3 x 11 x 13 x 20 -> 40, 3x3, stride 2, valid", or "dense, 3 x 200 -> 40"
inline std::string text_of(const WindowCase& c) {
  if (c.height == 1 && c.width == 1 && c.size == 1) {
    return fmt::format("dense, {} x {} -> {}", c.images, c.channels, c.outputs);
  }
  return fmt::format("{} x {} x {} x {} -> {}, {}x{}, stride {}, {}", c.images, c.height, c.width,
                     c.channels, c.outputs, c.size, c.size, c.stride, cputrain::word_of(c.padding));
}

}  // namespace cputrain::cuda
