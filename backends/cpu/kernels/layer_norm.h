#pragma once

#include <cstddef>

#include "backends/cpu/kernels/bf16.h"
#include "core/array.h"

/// The loops of layer normalization over pixels of one image. They run on the calling thread. What
/// they make of a pixel depends on nothing but its numbers, where ranges begin at multiples of
/// kPixelsAtOnce.
namespace cputrain::cpu::kernels {

/// Pixels whose numbers a block of channels has beside each other: the sums of so many are in
/// registers.
constexpr std::size_t kPixelsAtOnce = 4;

/// How the image lies in memory, and what its pixels are normalized by. Vectors by channel are of
/// whole blocks, with zeros behind the channels.
struct PixelNorm {
  int block;           ///< channels beside each other: 1, 8 or 16, of 16-bit numbers 16
  bool flat;           ///< one pixel in blocks of 16, the last of which ends with the last channel
  std::size_t pixels;  ///< per image, in each block
  std::size_t channels;
  float epsilon;
  const float *gamma, *beta, *ones;
  float *mean, *inverse;  ///< a number a pixel; `inverse`: 1 / deviation

  std::size_t blocks() const {
    return (channels + static_cast<std::size_t>(block) - 1) / static_cast<std::size_t>(block);
  }
};

/// Writes mean, inverse and dst of a range of pixels.
void normalize_pixels(const PixelNorm&, const Range& pixels, const float* src, float* dst);
void normalize_pixels(const PixelNorm&, const Range& pixels, const Bf16* src, Bf16* dst);

/// The gradient of src, added to what is there if so asked.
void normalize_pixels_backward(const PixelNorm&, const Range& pixels, const float* src,
                               const float* diff_dst, float* diff_src, bool adds);
void normalize_pixels_backward(const PixelNorm&, const Range& pixels, const Bf16* src,
                               const Bf16* diff_dst, Bf16* diff_src, bool adds);

/// Adds per channel, over a range of blocks: sums += gradient, products += gradient * normalized.
void add_pixel_slopes(const PixelNorm&, const Range& blocks, const float* src,
                      const float* diff_dst, double* sums, double* products);
void add_pixel_slopes(const PixelNorm&, const Range& blocks, const Bf16* src, const Bf16* diff_dst,
                      double* sums, double* products);

}  // namespace cputrain::cpu::kernels
