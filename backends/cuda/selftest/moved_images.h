#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/image_feed.h"

/// Moves of images (compute/image_feed.h), and what they make, pixel by pixel.
namespace cputrain::cuda {

/// The images in the reverse order, each mirrored, with a row and a column of black.
inline std::vector<compute::ImageMove> mirrored(int images, int height, int width) {
  std::vector<compute::ImageMove> moves;
  for (int i = 0; i < images; ++i) {
    moves.push_back({.source = static_cast<std::uint32_t>(images - 1 - i),
                     .first = width - 1,
                     .down = width,
                     .across = -1,
                     .top = 1,
                     .bottom = height,
                     .left = 0,
                     .right = width - 1});
  }
  return moves;
}

inline std::vector<std::uint8_t> mirrored_bytes(const std::vector<std::uint8_t>& bytes, int images,
                                                int height, int width) {
  std::vector<std::uint8_t> moved;
  for (int i = images - 1; i >= 0; --i) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          const int place = ((i * height + y) * width + width - 1 - x) * 3 + c;
          const bool black = y == 0 || x == width - 1;
          moved.push_back(black ? std::uint8_t{0} : bytes[static_cast<std::size_t>(place)]);
        }
      }
    }
  }
  return moved;
}

}  // namespace cputrain::cuda
