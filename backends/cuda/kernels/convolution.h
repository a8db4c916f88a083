#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/convolution_plan.h"

/// Convolutions, and dense layers, on tensor cores: implicit GEMMs of float maps (shapes.h) in
/// precision `exact`, where each product is three of TF32 numbers (big * big + big * small + small
/// * big) with sums in float.
///
/// Weights lie as (output channel, row, column, input channel), both kinds of channels padded; what
/// is padding is zero, in gradients too. Every sum has the same bits from run to run on devices
/// with as many multiprocessors: a long one is cut into slices (split-K), whose sums lie in
/// `workspace` until a second kernel adds them in order. Arrays begin on 16-byte boundaries.
namespace cputrain::cuda {

/// What all of them need to know besides the arrays.
struct ConvolutionCall {
  WindowShape shape;
  ConvolutionPlan plan;        ///< of this shape
  float* workspace = nullptr;  ///< as large as the plan says
};

/// dst = src * weights + bias. `bias` has dst.channels elements; null: there is none.
void convolution_forward(Stream, const ConvolutionCall&, const float* src, const float* weights,
                         const float* bias, float* dst);

/// diff_src = the gradient by src, of all positions, also those that no window covers.
/// `add`: it is added to what is there.
void convolution_backward_data(Stream, const ConvolutionCall&, const float* diff_dst,
                               const float* weights, float* diff_src, bool add);

/// diff_weights (and, where it is not null, diff_bias) = the gradients, or are added to.
void convolution_backward_weights(Stream, const ConvolutionCall&, const float* src,
                                  const float* diff_dst, float* diff_weights, float* diff_bias,
                                  bool add);

}  // namespace cputrain::cuda
