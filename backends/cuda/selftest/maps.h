#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/kernels/shapes.h"

namespace cputrain::cuda {

/// Positions of `channels` numbers each as they lie in the device's maps: with padding.
template <class T>
std::vector<T> with_padding(const std::vector<T>& dense, int channels, T padding = 0) {
  const auto from = static_cast<std::size_t>(channels);
  const auto to = static_cast<std::size_t>(padded_channels(channels));
  std::vector<T> map(dense.size() / from * to, padding);
  for (std::size_t i = 0; i < dense.size(); ++i) map[i / from * to + i % from] = dense[i];
  return map;
}

}  // namespace cputrain::cuda
