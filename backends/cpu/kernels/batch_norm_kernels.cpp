#include "backends/cpu/kernels/batch_norm_kernels.h"

#include <algorithm>

#include "backends/cpu/kernels/clones.h"

namespace cputrain::cpu::kernels {
namespace {

/// Vectors of one block of channels; the compiler splits them where registers are shorter. They are
/// handed over by reference: how a function returns one depends on the instruction set.
template <int kBlock>
struct Lanes {
  using Float [[gnu::vector_size(kBlock * 4)]] = float;
  using Double [[gnu::vector_size(kBlock * 8)]] = double;
  // The same, loaded from and stored to any address.
  using AnyFloat [[gnu::vector_size(kBlock * 4), gnu::aligned(4)]] = float;
  using AnyDouble [[gnu::vector_size(kBlock * 8), gnu::aligned(8)]] = double;
};

/// A single channel is no vector.
template <>
struct Lanes<1> {
  using Float = float;
  using Double = double;
  using AnyFloat = float;
  using AnyDouble = double;
};

template <int kBlock>
[[gnu::always_inline]] inline auto at(const float* p) -> const typename Lanes<kBlock>::AnyFloat& {
  return *reinterpret_cast<const typename Lanes<kBlock>::AnyFloat*>(p);
}
template <int kBlock>
[[gnu::always_inline]] inline auto at(float* p) -> typename Lanes<kBlock>::AnyFloat& {
  return *reinterpret_cast<typename Lanes<kBlock>::AnyFloat*>(p);
}
template <int kBlock>
[[gnu::always_inline]] inline auto at(double* p) -> typename Lanes<kBlock>::AnyDouble& {
  return *reinterpret_cast<typename Lanes<kBlock>::AnyDouble*>(p);
}

template <int kBlock>
[[gnu::always_inline]] inline void widen(const typename Lanes<kBlock>::Float& narrow,
                                         typename Lanes<kBlock>::Double& wide) {
  if constexpr (kBlock == 1) {
    wide = static_cast<double>(narrow);
  } else {
    wide = __builtin_convertvector(narrow, typename Lanes<kBlock>::Double);
  }
}

/// Sums stay in float for so many pixels (they fit the first cache for a second look), then go on
/// in double.
constexpr std::size_t kChunk = 64;

template <int kBlock>
[[gnu::always_inline]] inline void moments(const float* src, std::size_t pixels, double before,
                                           double* mean_out, double* squares_out) {
  using L = Lanes<kBlock>;
  typename L::Double mean = at<kBlock>(mean_out), squares = at<kBlock>(squares_out);
  for (std::size_t done = 0; done < pixels;) {
    const std::size_t count = std::min(kChunk, pixels - done);
    const float* chunk = src + done * kBlock;
    typename L::Float sum{};
    for (std::size_t i = 0; i < count; ++i) sum += at<kBlock>(chunk + i * kBlock);
    const typename L::Float centre = sum / static_cast<float>(count);
    typename L::Float spread{};
    for (std::size_t i = 0; i < count; ++i) {
      const typename L::Float distance = at<kBlock>(chunk + i * kBlock) - centre;
      spread += distance * distance;
    }
    const double old = before + static_cast<double>(done), fresh = static_cast<double>(count);
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

template <int kBlock>
[[gnu::always_inline]] inline void scale_and_shift(bool relu, const float* src,
                                                   const float* scale_in, const float* shift_in,
                                                   std::size_t pixels, float* dst) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(scale_in), shift = at<kBlock>(shift_in);
  for (std::size_t i = 0; i < pixels; ++i) {
    typename L::Float value = at<kBlock>(src + i * kBlock) * scale + shift;
    if (relu) value = value < 0 ? typename L::Float{} : value;  // NaN stays, so that it is seen
    at<kBlock>(dst + i * kBlock) = value;
  }
}

template <int kBlock>
[[gnu::always_inline]] inline void slopes(const Normalization& n, const float* src,
                                          const float* diff_dst, std::size_t pixels, double* sums,
                                          double* products) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(n.scale), shift = at<kBlock>(n.shift),
                          mean = at<kBlock>(n.mean);
  for (std::size_t done = 0; done < pixels;) {
    const std::size_t end = std::min(done + kChunk, pixels);
    typename L::Float sum{}, product{};
    for (; done < end; ++done) {
      const typename L::Float value = at<kBlock>(src + done * kBlock);
      typename L::Float diff = at<kBlock>(diff_dst + done * kBlock);
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

template <int kBlock>
[[gnu::always_inline]] inline void backward(const Normalization& n, const float* src,
                                            const float* diff_dst, const float* slope_in,
                                            const float* offset_in, std::size_t pixels, bool adds,
                                            float* diff_src) {
  using L = Lanes<kBlock>;
  const typename L::Float scale = at<kBlock>(n.scale), shift = at<kBlock>(n.shift),
                          mean = at<kBlock>(n.mean), slope = at<kBlock>(slope_in),
                          offset = at<kBlock>(offset_in);
  for (std::size_t i = 0; i < pixels; ++i) {
    const typename L::Float value = at<kBlock>(src + i * kBlock);
    typename L::Float diff = at<kBlock>(diff_dst + i * kBlock);
    if (n.relu) diff = value * scale + shift > 0 ? diff : typename L::Float{};
    typename L::Float sum = scale * diff + slope * (value - mean) + offset;
    if (adds) sum += at<kBlock>(diff_src + i * kBlock);
    at<kBlock>(diff_src + i * kBlock) = sum;
  }
}

// Only functions, not templates, can be compiled for several instruction sets.
#define CPUTRAIN_PLANE_LOOPS(kBlock)                                                            \
  CPUTRAIN_CLONES void moments_##kBlock(const float* src, std::size_t pixels, double before,    \
                                        double* mean, double* squares) {                        \
    moments<kBlock>(src, pixels, before, mean, squares);                                        \
  }                                                                                             \
  CPUTRAIN_CLONES void normalize_##kBlock(bool relu, const float* src, const float* scale,      \
                                          const float* shift, std::size_t pixels, float* dst) { \
    scale_and_shift<kBlock>(relu, src, scale, shift, pixels, dst);                              \
  }                                                                                             \
  CPUTRAIN_CLONES void slopes_##kBlock(const Normalization& n, const float* src,                \
                                       const float* diff_dst, std::size_t pixels, double* sums, \
                                       double* products) {                                      \
    slopes<kBlock>(n, src, diff_dst, pixels, sums, products);                                   \
  }                                                                                             \
  CPUTRAIN_CLONES void backward_##kBlock(                                                       \
      const Normalization& n, const float* src, const float* diff_dst, const float* slope,      \
      const float* offset, std::size_t pixels, bool adds, float* diff_src) {                    \
    backward<kBlock>(n, src, diff_dst, slope, offset, pixels, adds, diff_src);                  \
  }
CPUTRAIN_PLANE_LOOPS(1)
CPUTRAIN_PLANE_LOOPS(8)
CPUTRAIN_PLANE_LOOPS(16)
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

}  // namespace cputrain::cpu::kernels
