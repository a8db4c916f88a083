#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/products/convolution_plan.h"

/// Convolutions, and dense layers, on tensor cores: implicit GEMMs of maps (shapes.h) and weights
/// that are stored as `numbers` says. Sums are floats; those that go to a map are rounded when they
/// are stored. `exact` makes three products of TF32 numbers of one product of floats
/// (gemm_fragments.h).
///
/// Weights lie as (output channel, row, column, input channel), both kinds of channels padded, with
/// columns that are positions (WindowShape); what is padding is zero, in gradients too. Bias and
/// all gradients of parameters are floats. Every sum has the same bits from run to run on devices
/// with as many multiprocessors: a long one is cut into slices (split-K), whose sums lie in
/// `workspace` until a second kernel adds them in order. Arrays begin on 16-byte boundaries; a map
/// or weights have at most kMostChunks, counted_chunks() are fewer than 2^31, and a map's side
/// together with the window's is less than 2^15.
namespace cputrain::cuda {

/// What all of them need to know besides the arrays.
struct ConvolutionCall {
  Numbers numbers = Numbers::exact;
  WindowShape shape;
  ConvolutionPlan plan;        ///< this shape's
  float* workspace = nullptr;  ///< plan.workspace_bytes()
};

/// dst = src * weights + bias + added. `bias` has dst.channels elements, `added` is another map
/// like dst; null: there is none. `moments`, as moments_of() has them: of dst as it is stored.
/// Without values none are made.
void convolution_forward(Stream, const ConvolutionCall&, const void* src, const void* weights,
                         const float* bias, const void* added, void* dst,
                         const ChannelSums& moments = {});

/// diff_src = the gradient by src, of all positions, also those that no window covers. A position
/// has one pixel: nobody asks for an image's gradient.
/// `add`: it is added to what is there. `slopes`, whose sums are as slopes_of() has them: of a
/// batch norm, as sum_slopes() makes them of diff_src. Without values none are made.
void convolution_backward_data(Stream, const ConvolutionCall&, const void* diff_dst,
                               const void* weights, void* diff_src, bool add,
                               const NormSlopes& slopes = {});

/// diff_weights (and, where it is not null, diff_bias) = the gradients, or are added to.
void convolution_backward_weights(Stream, const ConvolutionCall&, const void* src,
                                  const void* diff_dst, float* diff_weights, float* diff_bias,
                                  bool add);

}  // namespace cputrain::cuda
