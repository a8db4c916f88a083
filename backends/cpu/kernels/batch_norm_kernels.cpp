#include "backends/cpu/kernels/batch_norm_kernels.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/lanes.h"
#include "core/casts.h"

namespace cputrain::cpu::kernels {
namespace {

/// Sums stay in float for so many pixels (they fit the first cache for a second look), then go on
/// in double.
constexpr std::size_t kChunk = 64;

/// Asks for the pixel a chunk further: processors foresee one stream of a plane too late to fill
/// the bandwidth of the memory.
template <int kBlock, class Number>
[[gnu::always_inline]] inline void fetch_ahead(const Number* plane, std::size_t pixel,
                                               std::size_t pixels) {
  if (pixel + kChunk < pixels) __builtin_prefetch(plane + (pixel + kChunk) * kBlock);
}

/// The sum of f(i) over [0, count), in four sums side by side: each waits for its own last addition
/// alone.
template <int kBlock, class F>
[[gnu::always_inline]] inline void add_up(std::size_t count, const F& f,
                                          typename Lanes<kBlock>::Float& sum) {
  typename Lanes<kBlock>::Float parts[4]{};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) f(i + k, parts[k]);
  }
  for (; i < count; ++i) f(i, parts[0]);
  sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void moments(const Number* src, std::size_t pixels, double before,
                                           double* mean_out, double* squares_out) {
  using L = Lanes<kBlock>;
  typename L::Double mean = at<kBlock>(mean_out), squares = at<kBlock>(squares_out);
  for (std::size_t done = 0; done < pixels;) {
    const std::size_t count = std::min(kChunk, pixels - done);
    const Number* chunk = src + done * kBlock;
    typename L::Float sum, spread;
    add_up<kBlock>(
        count,
        [&](std::size_t i, typename L::Float & part) __attribute__((always_inline)) {
          typename L::Float value;
          load<kBlock>(chunk + i * kBlock, value);
          fetch_ahead<kBlock>(src, done + i, pixels);
          part += value;
        },
        sum);
    const typename L::Float centre = sum / static_cast<float>(count);
    add_up<kBlock>(
        count,
        [&](std::size_t i, typename L::Float & part) __attribute__((always_inline)) {
          typename L::Float value;
          load<kBlock>(chunk + i * kBlock, value);
          const typename L::Float distance = value - centre;
          part += distance * distance;
        },
        spread);
    const double old = before + to_double(done), fresh = to_double(count);
    typename L::Double centre_wide, spread_wide;
    widen<kBlock>(centre, centre_wide);
    widen<kBlock>(spread, spread_wide);
    const typename L::Double delta = centre_wide - mean;
    mean += delta * (fresh / (old + fresh));
    squares += spread_wide + delta * delta * (old * fresh / (old + fresh));
    done += count;
  }
  at<kBlock>(mean_out) = mean;
  at<kBlock>(squares_out) = squares;
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void scale_and_shift(bool relu, const Number* src,
                                                   const float* scale_in, const float* shift_in,
                                                   std::size_t pixels, Number* dst) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(scale_in), shift = at<kBlock>(shift_in);
  for (std::size_t i = 0; i < pixels; ++i) {
    typename L::Float value;
    load<kBlock>(src + i * kBlock, value);
    value = value * scale + shift;
    if (relu) value = value < 0 ? typename L::Float{} : value;  // NaN stays, so that it is seen
    store<kBlock>(value, dst + i * kBlock);
  }
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void slopes(const Normalization& n, const Number* src,
                                          const Number* diff_dst, std::size_t pixels, double* sums,
                                          double* products) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(n.scale), shift = at<kBlock>(n.shift),
                          mean = at<kBlock>(n.mean);
  for (std::size_t done = 0; done < pixels;) {
    const std::size_t end = std::min(done + kChunk, pixels);
    typename L::Float sum{}, product{};
    for (; done < end; ++done) {
      typename L::Float value, diff;
      load<kBlock>(src + done * kBlock, value);
      load<kBlock>(diff_dst + done * kBlock, diff);
      fetch_ahead<kBlock>(src, done, pixels);
      fetch_ahead<kBlock>(diff_dst, done, pixels);
      if (n.relu) diff = value * scale + shift > 0 ? diff : typename L::Float{};
      sum += diff;
      product += diff * (value - mean);
    }
    typename L::Double sum_wide, product_wide;
    widen<kBlock>(sum, sum_wide);
    widen<kBlock>(product, product_wide);
    at<kBlock>(sums) += sum_wide;
    at<kBlock>(products) += product_wide;
  }
}

template <int kBlock, class Number>
[[gnu::always_inline]] inline void backward(const Normalization& n, const Number* src,
                                            const Number* diff_dst, const float* slope_in,
                                            const float* offset_in, std::size_t pixels, bool adds,
                                            Number* diff_src) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(n.scale), shift = at<kBlock>(n.shift),
                          mean = at<kBlock>(n.mean), slope = at<kBlock>(slope_in),
                          offset = at<kBlock>(offset_in);
  for (std::size_t i = 0; i < pixels; ++i) {
    typename L::Float value, diff;
    load<kBlock>(src + i * kBlock, value);
    load<kBlock>(diff_dst + i * kBlock, diff);
    fetch_ahead<kBlock>(src, i, pixels);
    fetch_ahead<kBlock>(diff_dst, i, pixels);
    if (n.relu) diff = value * scale + shift > 0 ? diff : typename L::Float{};
    typename L::Float sum = scale * diff + slope * (value - mean) + offset;
    if (adds) {
      typename L::Float before;
      load<kBlock>(diff_src + i * kBlock, before);
      sum += before;
    }
    store<kBlock>(sum, diff_src + i * kBlock);
  }
}

// Only functions, not templates, can be compiled for several instruction sets.
#define CPUTRAIN_PLANE_LOOPS(name, kBlock, Number)                                             \
  CPUTRAIN_CLONES void moments_##name(const Number* src, std::size_t pixels, double before,    \
                                      double* mean, double* squares) {                         \
    moments<kBlock>(src, pixels, before, mean, squares);                                       \
  }                                                                                            \
  CPUTRAIN_CLONES void normalize_##name(bool relu, const Number* src, const float* scale,      \
                                        const float* shift, std::size_t pixels, Number* dst) { \
    scale_and_shift<kBlock>(relu, src, scale, shift, pixels, dst);                             \
  }                                                                                            \
  CPUTRAIN_CLONES void slopes_##name(const Normalization& n, const Number* src,                \
                                     const Number* diff_dst, std::size_t pixels, double* sums, \
                                     double* products) {                                       \
    slopes<kBlock>(n, src, diff_dst, pixels, sums, products);                                  \
  }                                                                                            \
  CPUTRAIN_CLONES void backward_##name(                                                        \
      const Normalization& n, const Number* src, const Number* diff_dst, const float* slope,   \
      const float* offset, std::size_t pixels, bool adds, Number* diff_src) {                  \
    backward<kBlock>(n, src, diff_dst, slope, offset, pixels, adds, diff_src);                 \
  }
CPUTRAIN_PLANE_LOOPS(1, 1, float)
CPUTRAIN_PLANE_LOOPS(8, 8, float)
CPUTRAIN_PLANE_LOOPS(16, 16, float)
CPUTRAIN_PLANE_LOOPS(narrow, 16, Bf16)
#undef CPUTRAIN_PLANE_LOOPS

/// The loop for a block of 1, 8 or 16.
template <class F>
F chosen(int block, F one, F eight, F sixteen) {
  return block == 16 ? sixteen : block == 8 ? eight : one;
}

}  // namespace

void add_moments(int block, const float* src, std::size_t pixels, double before, double* mean,
                 double* squares) {
  chosen(block, moments_1, moments_8, moments_16)(src, pixels, before, mean, squares);
}

void normalize(int block, bool relu, const float* src, const float* scale, const float* shift,
               std::size_t pixels, float* dst) {
  chosen(block, normalize_1, normalize_8, normalize_16)(relu, src, scale, shift, pixels, dst);
}

void add_slopes(int block, const Normalization& n, const float* src, const float* diff_dst,
                std::size_t pixels, double* sums, double* products) {
  chosen(block, slopes_1, slopes_8, slopes_16)(n, src, diff_dst, pixels, sums, products);
}

void normalize_backward(int block, const Normalization& n, const float* src, const float* diff_dst,
                        const float* slope, const float* offset, std::size_t pixels, bool adds,
                        float* diff_src) {
  chosen(block, backward_1, backward_8, backward_16)(n, src, diff_dst, slope, offset, pixels, adds,
                                                     diff_src);
}

// Maps of 16 bits need AVX512-BF16, and have blocks of 16.

void add_moments([[maybe_unused]] int block, const Bf16* src, std::size_t pixels, double before,
                 double* mean, double* squares) {
  assert(block == 16);
  moments_narrow(src, pixels, before, mean, squares);
}

void normalize([[maybe_unused]] int block, bool relu, const Bf16* src, const float* scale,
               const float* shift, std::size_t pixels, Bf16* dst) {
  assert(block == 16);
  normalize_narrow(relu, src, scale, shift, pixels, dst);
}

void add_slopes([[maybe_unused]] int block, const Normalization& n, const Bf16* src,
                const Bf16* diff_dst, std::size_t pixels, double* sums, double* products) {
  assert(block == 16);
  slopes_narrow(n, src, diff_dst, pixels, sums, products);
}

void normalize_backward([[maybe_unused]] int block, const Normalization& n, const Bf16* src,
                        const Bf16* diff_dst, const float* slope, const float* offset,
                        std::size_t pixels, bool adds, Bf16* diff_src) {
  assert(block == 16);
  backward_narrow(n, src, diff_dst, slope, offset, pixels, adds, diff_src);
}

}  // namespace cputrain::cpu::kernels
