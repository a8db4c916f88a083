#pragma once

#include <fmt/format.h>

#include <string>

#include "backends/cuda/kernels/shapes.h"
#include "model/layer.h"

namespace cputrain::cuda {

/// A window that slides over a map, as in a model. `width` and `padding` count positions, each of
/// which may have several pixels.
struct WindowCase {
  int images, height, width, channels, outputs, size, stride;
  model::Padding padding = model::Padding::same;
  int pixels = 1;

  WindowShape window() const {
    const int columns = pieces(size, pixels), across = stride / pixels;
    const model::PadAmount rows = model::pad_amount(padding, height, size, stride);
    const model::PadAmount row = model::pad_amount(padding, width, columns, across);
    return {images,
            {height, width, padded_channels(channels)},
            {(height + rows.before + rows.after - size) / stride + 1,
             (width + row.before + row.after - columns) / across + 1, padded_channels(outputs)},
            size,
            stride,
            rows.before,
            row.before,
            false,
            pixels};
  }
};

/// "3 x 11 x 13 x 20 -> 40, 3x3, stride 2, valid", or "dense, 3 x 200 -> 40"
inline std::string text_of(const WindowCase& c) {
  if (c.height == 1 && c.width == 1 && c.size == 1) {
    return fmt::format("dense, {} x {} -> {}", c.images, c.channels, c.outputs);
  }
  return fmt::format("{} x {} x {} x {} -> {}, {}x{}, stride {}, {}{}", c.images, c.height, c.width,
                     c.channels, c.outputs, c.size, c.size, c.stride, cputrain::word_of(c.padding),
                     c.pixels > 1 ? ", pairs of pixels" : "");
}

}  // namespace cputrain::cuda
