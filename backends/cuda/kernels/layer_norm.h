#pragma once

#include "backends/cuda/kernels/batch_norm/batch_norm.h"

/// Layer normalization of maps (shapes.h) that are stored as `Numbers` say: each position by mean
/// and variance of its own channels. The lanes of a warp, or of a part of one, share a position.
namespace cputrain::cuda {

struct LayerNormPass {
  int positions = 0;  ///< in all images
  int channels = 1;   ///< without padding
  float epsilon = 0;
  const float *gamma = nullptr, *beta = nullptr;  ///< filled up with zeros; null: there is none
  float* mean = nullptr;                          ///< per position: forward writes it
  float* inverse = nullptr;                       ///< 1 / deviation, as well
};

/// dst = normalised src.
void normalize_positions(Stream, Numbers, const LayerNormPass&, const void* src, void* dst);
/// The gradient of src, written or added to what is there.
void normalize_positions_backward(Stream, Numbers, const LayerNormPass&, const void* src,
                                  const void* diff_dst, void* diff_src, bool add);
/// Sums of the gradient, and of the gradient times what was normalised, for finish_slopes().
void sum_position_slopes(Stream, Numbers, const ChannelSums&, const LayerNormPass&, const void* src,
                         const void* diff_dst);

}  // namespace cputrain::cuda
