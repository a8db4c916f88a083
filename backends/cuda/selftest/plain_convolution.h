#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cuda/kernels/shapes.h"

/// Convolutions as plain loops over all products, in double. Maps and weights lie as the kernels
/// have them, with padded channels.
namespace cputrain::cuda {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Calls visit(number of src, number of weights, number of dst) for each product of
/// dst += src * weights.
template <class Visit>
void each_product(const WindowShape& s, const Visit& visit) {
  const int inputs = s.src.channels, outputs = s.dst.channels;
  for (int window = 0; window < s.windows(); ++window) {
    const int image = window / (s.dst.height * s.dst.width);
    const int p = window / s.dst.width % s.dst.height, q = window % s.dst.width;
    for (int r = 0; r < s.size; ++r) {
      for (int t = 0; t < s.columns(); ++t) {
        const int y = p * s.stride - s.top + r, x = q * (s.stride / s.pixels) - s.left + t;
        if (y < 0 || y >= s.src.height || x < 0 || x >= s.src.width) continue;
        const int position = (image * s.src.height + y) * s.src.width + x;
        for (int o = 0; o < outputs; ++o) {
          const auto from = static_cast<std::size_t>(position) * static_cast<std::size_t>(inputs);
          const auto weight =
              static_cast<std::size_t>(((o * s.size + r) * s.columns() + t) * inputs);
          const auto to = static_cast<std::size_t>(window * outputs + o);
          const int there = std::min(s.pixels, s.size - s.pixels * t) * inputs / s.pixels;
          for (std::size_t c = 0; c < static_cast<std::size_t>(there); ++c) {
            visit(from + c, weight + c, to);
          }
        }
      }
    }
  }
}

inline Doubles reference_forward(const WindowShape& s, const Floats& src, const Floats& weights,
                                 const Floats& bias) {
  Doubles dst(static_cast<std::size_t>(s.images) * s.dst.size());
  for (std::size_t i = 0; i < dst.size(); ++i) dst[i] = bias[i % bias.size()];
  each_product(s, [&](std::size_t from, std::size_t weight, std::size_t to) {
    dst[to] += static_cast<double>(src[from]) * static_cast<double>(weights[weight]);
  });
  return dst;
}

inline Doubles reference_data(const WindowShape& s, const Floats& diff_dst, const Floats& weights) {
  Doubles diff_src(static_cast<std::size_t>(s.images) * s.src.size());
  each_product(s, [&](std::size_t from, std::size_t weight, std::size_t to) {
    diff_src[from] += static_cast<double>(diff_dst[to]) * static_cast<double>(weights[weight]);
  });
  return diff_src;
}

inline Doubles reference_weights(const WindowShape& s, const Floats& src, const Floats& diff_dst) {
  Doubles diff_weights(static_cast<std::size_t>(s.dst.channels) *
                       static_cast<std::size_t>(s.taps()));
  each_product(s, [&](std::size_t from, std::size_t weight, std::size_t to) {
    diff_weights[weight] += static_cast<double>(diff_dst[to]) * static_cast<double>(src[from]);
  });
  return diff_weights;
}

inline Doubles reference_bias(const WindowShape& s, const Floats& diff_dst) {
  Doubles diff_bias(static_cast<std::size_t>(s.dst.channels));
  for (std::size_t i = 0; i < diff_dst.size(); ++i) diff_bias[i % diff_bias.size()] += diff_dst[i];
  return diff_bias;
}

}  // namespace cputrain::cuda
