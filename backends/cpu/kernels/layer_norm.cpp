#include "backends/cpu/kernels/layer_norm.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/lanes.h"

namespace cputrain::cpu::kernels {
namespace {

/// Sums over pixels stay in float for so many of them, then go on in double.
constexpr std::size_t kPixelsInFloat = 64;

/// Blocks of an image's pixels. Those of a flat one may end before their lanes do.
template <int kBlock, bool kFlat>
struct Blocks {
  using Float = typename Lanes<kBlock>::Float;
  const PixelNorm& n;

  [[gnu::always_inline]] std::size_t place(std::size_t block, std::size_t pixel) const {
    return (block * n.pixels + pixel) * kBlock;
  }
  /// Channels of the block.
  [[gnu::always_inline]] std::size_t count(std::size_t block) const {
    return std::min<std::size_t>(kBlock, n.channels - block * kBlock);
  }
  template <class Number>
  [[gnu::always_inline]] void load(const Number* from, std::size_t block, std::size_t pixel,
                                   Float& to) const {
    from += place(block, pixel);
    if constexpr (kFlat) {
      if (const std::size_t some = count(block); some < kBlock) {
        to = Float{};
#pragma GCC unroll 1
        for (std::size_t i = 0; i < some; ++i) to[i] = to_float(from[i]);
        return;
      }
    }
    cpu::load<kBlock>(from, to);
  }
  template <class Number>
  [[gnu::always_inline]] void store(const Float& from, std::size_t block, std::size_t pixel,
                                    Number* to) const {
    to += place(block, pixel);
    if constexpr (kFlat) {
      if (const std::size_t some = count(block); some < kBlock) {
#pragma GCC unroll 1
        for (std::size_t i = 0; i < some; ++i) set(to[i], from[i]);
        return;
      }
    }
    cpu::store<kBlock>(from, to);
  }
};

/// The sum of the lanes, halves upon each other.
template <int kBlock>
[[gnu::always_inline]] inline float lane_sum(const typename Lanes<kBlock>::Float& lanes) {
  if constexpr (kBlock == 1) {
    return lanes;
  } else if constexpr (kBlock == 2) {
    return lanes[0] + lanes[1];
  } else {
    const auto add = [&]<int... kLane>(std::integer_sequence<int, kLane...>)
        __attribute__((always_inline)) {
      const typename Lanes<kBlock / 2>::Float half =
          __builtin_shufflevector(lanes, lanes, kLane...) +
          __builtin_shufflevector(lanes, lanes, (kLane + kBlock / 2)...);
      return lane_sum<kBlock / 2>(half);
    };
    return add(std::make_integer_sequence<int, kBlock / 2>());
  }
}

/// Pixels `first` to `first` + kTile of an image.
template <int kBlock, int kTile, bool kFlat, class Number>
[[gnu::always_inline]] inline void normalize_tile(const PixelNorm& n, std::size_t first,
                                                  const Number* src, Number* dst) {
  using Float = typename Lanes<kBlock>::Float;
  const Blocks<kBlock, kFlat> map{n};
  const std::size_t blocks = n.blocks();
  const float each = 1 / static_cast<float>(n.channels);
  Float sums[kTile]{}, squares[kTile]{};
  float mean[kTile], inverse[kTile];
  for (std::size_t b = 0; b < blocks; ++b) {  // zeros fill the last one
    for (int t = 0; t < kTile; ++t) {
      Float value;
      map.load(src, b, first + t, value);
      sums[t] += value;
    }
  }
  for (int t = 0; t < kTile; ++t) mean[t] = lane_sum<kBlock>(sums[t]) * each;
  for (std::size_t b = 0; b < blocks; ++b) {
    const Float ones = at<kBlock>(n.ones + b * kBlock);
    for (int t = 0; t < kTile; ++t) {
      Float value;
      map.load(src, b, first + t, value);
      value = (value - mean[t]) * ones;
      squares[t] += value * value;
    }
  }
  for (int t = 0; t < kTile; ++t) {
    inverse[t] = 1 / std::sqrt(lane_sum<kBlock>(squares[t]) * each + n.epsilon);
    n.mean[first + t] = mean[t];
    n.inverse[first + t] = inverse[t];
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    const Float gamma = at<kBlock>(n.gamma + b * kBlock), beta = at<kBlock>(n.beta + b * kBlock);
    for (int t = 0; t < kTile; ++t) {
      Float value;
      map.load(src, b, first + t, value);
      value = (value - mean[t]) * inverse[t] * gamma + beta;
      map.store(value, b, first + t, dst);
    }
  }
}

/// What arrives loses its mean, and its part along the normalized numbers: mean and variance depend
/// on every channel.
template <int kBlock, int kTile, bool kFlat, class Number>
[[gnu::always_inline]] inline void backward_tile(const PixelNorm& n, std::size_t first,
                                                 const Number* src, const Number* diff_dst,
                                                 Number* diff_src, bool adds) {
  using Float = typename Lanes<kBlock>::Float;
  const Blocks<kBlock, kFlat> map{n};
  const std::size_t blocks = n.blocks();
  const float each = 1 / static_cast<float>(n.channels);
  Float sums[kTile]{}, products[kTile]{};
  for (std::size_t b = 0; b < blocks; ++b) {
    const Float gamma = at<kBlock>(n.gamma + b * kBlock);
    for (int t = 0; t < kTile; ++t) {
      Float value, diff;
      map.load(src, b, first + t, value);
      map.load(diff_dst, b, first + t, diff);
      diff *= gamma;
      sums[t] += diff;
      products[t] += diff * (value - n.mean[first + t]);
    }
  }
  float offset[kTile], slope[kTile];
  for (int t = 0; t < kTile; ++t) {
    const float inverse = n.inverse[first + t];
    offset[t] = lane_sum<kBlock>(sums[t]) * each;
    slope[t] = lane_sum<kBlock>(products[t]) * each * inverse * inverse;
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    const Float gamma = at<kBlock>(n.gamma + b * kBlock), ones = at<kBlock>(n.ones + b * kBlock);
    for (int t = 0; t < kTile; ++t) {
      Float value, diff;
      map.load(src, b, first + t, value);
      map.load(diff_dst, b, first + t, diff);
      diff = diff * gamma - ones * (offset[t] + (value - n.mean[first + t]) * slope[t]);
      diff *= n.inverse[first + t];
      if (adds) {
        Float before;
        map.load(diff_src, b, first + t, before);
        diff += before;
      }
      map.store(diff, b, first + t, diff_src);
    }
  }
}

/// f<pixels at once>(first pixel) for a range.
template <class F>
[[gnu::always_inline]] inline void for_tiles(const Range& pixels, const F& f) {
  std::size_t p = pixels.begin;
  for (; p + kPixelsAtOnce <= pixels.end; p += kPixelsAtOnce) {
    f(std::integral_constant<int, kPixelsAtOnce>(), p);
  }
  for (; p < pixels.end; ++p) f(std::integral_constant<int, 1>(), p);
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void normalize_range(const PixelNorm& n, const Range& pixels,
                                                   const Number* src, Number* dst) {
  if constexpr (kBlock == 16) {
    if (n.flat) return normalize_tile<kBlock, 1, true>(n, 0, src, dst);
  }
  for_tiles(
      pixels, [&]<int kTile>(std::integral_constant<int, kTile>, std::size_t first) __attribute__((
                  always_inline)) { normalize_tile<kBlock, kTile, false>(n, first, src, dst); });
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void backward_range(const PixelNorm& n, const Range& pixels,
                                                  const Number* src, const Number* diff_dst,
                                                  Number* diff_src, bool adds) {
  if constexpr (kBlock == 16) {
    if (n.flat) return backward_tile<kBlock, 1, true>(n, 0, src, diff_dst, diff_src, adds);
  }
  for_tiles(
      pixels, [&]<int kTile>(std::integral_constant<int, kTile>, std::size_t first)
                  __attribute__((always_inline)) {
                    backward_tile<kBlock, kTile, false>(n, first, src, diff_dst, diff_src, adds);
                  });
}

template <int kBlock, bool kFlat, class Number>
[[gnu::always_inline]] inline void add_slopes(const PixelNorm& n, const Range& blocks,
                                              const Number* src, const Number* diff_dst,
                                              double* sums, double* products) {
  using L = Lanes<kBlock>;
  const Blocks<kBlock, kFlat> map{n};
  for (std::size_t b = blocks.begin; b < blocks.end; ++b) {
    for (std::size_t done = 0; done < n.pixels;) {
      const std::size_t end = std::min(done + kPixelsInFloat, n.pixels);
      typename L::Float sum{}, product{};
      for (; done < end; ++done) {
        typename L::Float value, diff;
        map.load(src, b, done, value);
        map.load(diff_dst, b, done, diff);
        sum += diff;
        product += diff * ((value - n.mean[done]) * n.inverse[done]);
      }
      typename L::Double sum_wide, product_wide;
      widen<kBlock>(sum, sum_wide);
      widen<kBlock>(product, product_wide);
      at<kBlock>(sums + b * kBlock) += sum_wide;
      at<kBlock>(products + b * kBlock) += product_wide;
    }
  }
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void slopes_of(const PixelNorm& n, const Range& blocks,
                                             const Number* src, const Number* diff_dst,
                                             double* sums, double* products) {
  if constexpr (kBlock == 16) {
    if (n.flat) return add_slopes<kBlock, true>(n, blocks, src, diff_dst, sums, products);
  }
  add_slopes<kBlock, false>(n, blocks, src, diff_dst, sums, products);
}

// Only functions, not templates, can be compiled for several instruction sets.
#define CPUTRAIN_PIXEL_LOOPS(name, kBlock, Number)                                       \
  CPUTRAIN_CLONES void normalize_pixels_##name(const PixelNorm& n, const Range& pixels,  \
                                               const Number* src, Number* dst) {         \
    normalize_range<kBlock>(n, pixels, src, dst);                                        \
  }                                                                                      \
  CPUTRAIN_CLONES void pixels_backward_##name(const PixelNorm& n, const Range& pixels,   \
                                              const Number* src, const Number* diff_dst, \
                                              Number* diff_src, bool adds) {             \
    backward_range<kBlock>(n, pixels, src, diff_dst, diff_src, adds);                    \
  }                                                                                      \
  CPUTRAIN_CLONES void pixel_slopes_##name(const PixelNorm& n, const Range& blocks,      \
                                           const Number* src, const Number* diff_dst,    \
                                           double* sums, double* products) {             \
    slopes_of<kBlock>(n, blocks, src, diff_dst, sums, products);                         \
  }
CPUTRAIN_PIXEL_LOOPS(1, 1, float)
CPUTRAIN_PIXEL_LOOPS(8, 8, float)
CPUTRAIN_PIXEL_LOOPS(16, 16, float)
CPUTRAIN_PIXEL_LOOPS(narrow, 16, Bf16)
#undef CPUTRAIN_PIXEL_LOOPS

/// The loop for blocks of 1, 8 or 16 channels.
template <class F>
F loop_of(const PixelNorm& n, F one, F eight, F sixteen) {
  return n.block == 16 ? sixteen : n.block == 8 ? eight : one;
}

}  // namespace

void normalize_pixels(const PixelNorm& n, const Range& pixels, const float* src, float* dst) {
  loop_of(n, normalize_pixels_1, normalize_pixels_8, normalize_pixels_16)(n, pixels, src, dst);
}

void normalize_pixels_backward(const PixelNorm& n, const Range& pixels, const float* src,
                               const float* diff_dst, float* diff_src, bool adds) {
  loop_of(n, pixels_backward_1, pixels_backward_8, pixels_backward_16)(n, pixels, src, diff_dst,
                                                                       diff_src, adds);
}

void add_pixel_slopes(const PixelNorm& n, const Range& blocks, const float* src,
                      const float* diff_dst, double* sums, double* products) {
  loop_of(n, pixel_slopes_1, pixel_slopes_8, pixel_slopes_16)(n, blocks, src, diff_dst, sums,
                                                              products);
}

void normalize_pixels(const PixelNorm& n, const Range& pixels, const Bf16* src, Bf16* dst) {
  assert(n.block == 16);
  normalize_pixels_narrow(n, pixels, src, dst);
}

void normalize_pixels_backward(const PixelNorm& n, const Range& pixels, const Bf16* src,
                               const Bf16* diff_dst, Bf16* diff_src, bool adds) {
  assert(n.block == 16);
  pixels_backward_narrow(n, pixels, src, diff_dst, diff_src, adds);
}

void add_pixel_slopes(const PixelNorm& n, const Range& blocks, const Bf16* src,
                      const Bf16* diff_dst, double* sums, double* products) {
  assert(n.block == 16);
  pixel_slopes_narrow(n, blocks, src, diff_dst, sums, products);
}

}  // namespace cputrain::cpu::kernels
