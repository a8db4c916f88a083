#pragma once

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/indices.h"

/// Pixels of a pass' images, and the numbers that networks read of them.
namespace cputrain::cuda {

/// The three bytes of pixel (y, x) of the image that `move` makes.
CPUTRAIN_DEVICE uchar4 moved_pixel(const ImageLoad& load, const compute::ImageMove& move, int y,
                                   int x) {
  if (y < move.top || y >= move.bottom || x < move.left || x >= move.right) {
    return make_uchar4(0, 0, 0, 0);
  }
  const std::int64_t place = offset_of_row(move.source, load.height * load.width) + move.first +
                             y * move.down + x * move.across;
  const std::uint8_t* bytes = load.facts->bytes + offset_of_row(place, 3);
  return make_uchar4(bytes[0], bytes[1], bytes[2], 0);
}

/// The numbers of its colours, from the first of `numbers` on.
CPUTRAIN_DEVICE void numbers_of(const ImageLoad& load, uchar4 pixel, float* numbers) {
  numbers[0] = pixel.x * load.scale.of[0] + load.offset.of[0];
  numbers[1] = pixel.y * load.scale.of[1] + load.offset.of[1];
  numbers[2] = pixel.z * load.scale.of[2] + load.offset.of[2];
}

}  // namespace cputrain::cuda
