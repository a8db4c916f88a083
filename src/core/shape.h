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

}  // namespace cputrain
