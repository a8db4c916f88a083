#pragma once

#include <cstddef>

namespace cputrain {

/// Extents of one sample's activation, without the batch: height, width, channels.
/// A flat feature vector of n values is {1, 1, n}.
struct Shape {
  int height = 1;
  int width = 1;
  int channels = 1;

  std::size_t size() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
  bool operator==(const Shape&) const = default;
};

/// A number for red, green and blue; a single one stands for all three. Without member functions
/// that kernels would call: a linker might take those from a file for one instruction set.
struct PerColour {
  float of[3];

  constexpr PerColour(float all) : of{all, all, all} {}
  constexpr PerColour(float red, float green, float blue) : of{red, green, blue} {}
  bool operator==(const PerColour&) const = default;
};

}  // namespace cputrain
