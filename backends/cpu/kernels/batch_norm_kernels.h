#pragma once

#include <cstddef>

#include "backends/cpu/kernels/bf16.h"

/// The loops of batch normalization over one plane: `pixels` pixels of one block of channels (1, 8
/// or 16 numbers a pixel; of 16 bits 16). They run on the calling thread; the sums are in double, a
/// number a lane.
namespace cputrain::cpu::kernels {

/// Joins the plane's values to those measured before, `before` of them in each lane: their mean and
/// the sum of their squared distances from it (Chan, Golub and LeVeque's update).
void add_moments(int block, const float* src, std::size_t pixels, double before, double* mean,
                 double* squares);
void add_moments(int block, const Bf16* src, std::size_t pixels, double before, double* mean,
                 double* squares);

/// dst = src * scale + shift, negative values made 0 where there is a ReLU.
void normalize(int block, bool relu, const float* src, const float* scale, const float* shift,
               std::size_t pixels, float* dst);
void normalize(int block, bool relu, const Bf16* src, const float* scale, const float* shift,
               std::size_t pixels, Bf16* dst);

/// What backward knows of the forward pass, a number a lane.
struct Normalization {
  bool relu;           ///< gradients pass only where src * scale + shift is above 0
  const float* scale;  ///< gamma / deviation
  const float* shift;
  const float* mean;
};

/// sums += gradient, products += gradient * (src - mean).
void add_slopes(int block, const Normalization&, const float* src, const float* diff_dst,
                std::size_t pixels, double* sums, double* products);
void add_slopes(int block, const Normalization&, const Bf16* src, const Bf16* diff_dst,
                std::size_t pixels, double* sums, double* products);

/// diff_src = scale * gradient + slope * (src - mean) + offset, or that much more where it adds.
void normalize_backward(int block, const Normalization&, const float* src, const float* diff_dst,
                        const float* slope, const float* offset, std::size_t pixels, bool adds,
                        float* diff_src);
void normalize_backward(int block, const Normalization&, const Bf16* src, const Bf16* diff_dst,
                        const float* slope, const float* offset, std::size_t pixels, bool adds,
                        Bf16* diff_src);

}  // namespace cputrain::cpu::kernels
