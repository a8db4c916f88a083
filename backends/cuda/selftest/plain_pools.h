#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cuda/kernels/shapes.h"

/// Pools as plain loops, in double. Maps lie as the kernels have them, with padded channels.
namespace cputrain::cuda {

/// Calls visit(number of dst, number of src, place in the window) for each number of src that a
/// window covers: rows and columns of a window in order.
template <class Visit>
void each_covered(const WindowShape& s, const Visit& visit) {
  const auto channels = static_cast<std::size_t>(s.src.channels);
  for (int window = 0; window < s.windows(); ++window) {
    const int image = window / (s.dst.height * s.dst.width);
    const int p = window / s.dst.width % s.dst.height, q = window % s.dst.width;
    for (int place = 0; place < s.size * s.size; ++place) {
      const int y = p * s.stride - s.top + place / s.size;
      const int x = q * s.stride - s.left + place % s.size;
      if (y < 0 || y >= s.src.height || x < 0 || x >= s.src.width) continue;
      const int position = (image * s.src.height + y) * s.src.width + x;
      for (std::size_t c = 0; c < channels; ++c) {
        visit(static_cast<std::size_t>(window) * channels + c,
              static_cast<std::size_t>(position) * channels + c, place);
      }
    }
  }
}

struct PlainMaxima {
  std::vector<double> values, places;
};

/// The first of equals wins.
inline PlainMaxima plain_maxima(const WindowShape& s, const std::vector<float>& src) {
  const std::size_t size = static_cast<std::size_t>(s.images) * s.dst.size();
  PlainMaxima made{std::vector<double>(size), std::vector<double>(size, -1)};
  each_covered(s, [&](std::size_t to, std::size_t from, int place) {
    const double value = src[from];
    if (made.places[to] >= 0 && value <= made.values[to]) return;
    made.values[to] = value;
    made.places[to] = place;
  });
  return made;
}

/// diff_src, added to `before`.
inline std::vector<double> plain_max_gradient(const WindowShape& s, const PlainMaxima& maxima,
                                              const std::vector<float>& diff_dst,
                                              const std::vector<float>& before) {
  std::vector<double> diff_src(before.begin(), before.end());
  each_covered(s, [&](std::size_t to, std::size_t from, int place) {
    if (maxima.places[to] == place) diff_src[from] += diff_dst[to];
  });
  return diff_src;
}

/// Numbers under each window that lie inside of src.
inline std::vector<double> covered_counts(const WindowShape& s) {
  std::vector<double> counts(static_cast<std::size_t>(s.images) * s.dst.size());
  each_covered(s, [&](std::size_t to, std::size_t, int) { ++counts[to]; });
  return counts;
}

inline std::vector<double> plain_means(const WindowShape& s, const std::vector<float>& src) {
  const std::vector<double> counts = covered_counts(s);
  std::vector<double> dst(counts.size());
  each_covered(s, [&](std::size_t to, std::size_t from, int) { dst[to] += src[from]; });
  std::transform(dst.begin(), dst.end(), counts.begin(), dst.begin(), std::divides<>());
  return dst;
}

/// diff_src, added to `before`.
inline std::vector<double> plain_mean_gradient(const WindowShape& s,
                                               const std::vector<float>& diff_dst,
                                               const std::vector<float>& before) {
  const std::vector<double> counts = covered_counts(s);
  std::vector<double> diff_src(before.begin(), before.end());
  each_covered(s, [&](std::size_t to, std::size_t from, int) {
    diff_src[from] += static_cast<double>(diff_dst[to]) / counts[to];
  });
  return diff_src;
}

}  // namespace cputrain::cuda
