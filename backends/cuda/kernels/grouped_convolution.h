#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// Convolutions whose channels and filters are dealt to groups, so that a filter reads the channels
/// of its own alone: depthwise ones have a channel in each. Products of so few channels fill no
/// tensor core; memory decides how long they take. Weights lie as (row, column, channel of the
/// group, filter), filters filled up to whole blocks with zeros.
namespace cputrain::cuda {

struct GroupedShape {
  WindowShape window;
  int channels = 1, filters = 1;  ///< without padding
  int groups = 1;

  constexpr int channels_of_group() const { return channels / groups; }
  constexpr int filters_of_group() const { return filters / groups; }
  /// A filter's weights, and with them the rows in which weights lie.
  constexpr int rows() const { return window.size * window.size * channels_of_group(); }
  constexpr bool depthwise() const { return groups == channels && groups == filters; }
};

/// dst = convolution of src, plus the bias where there is one. `weights` as `Numbers` say, the bias
/// is floats.
void grouped_forward(Stream, Numbers, const GroupedShape&, const void* src, const void* weights,
                     const float* bias, void* dst);

/// The gradient of src, written or added to what is there: every position looks at the windows that
/// cover it, in their order.
void grouped_backward_data(Stream, Numbers, const GroupedShape&, const void* diff_dst,
                           const void* weights, void* diff_src, bool add);

/// Slices into which windows are cut, each with sums of its own, so that there are blocks for all
/// multiprocessors; of the same shape always as many.
int grouped_slices(Numbers, const GroupedShape&, int multiprocessors);
/// Floats of the sums of so many slices, the bias' included.
std::int64_t grouped_sums(const GroupedShape&, int slices);

/// The gradients of the weights and of the bias (null: there is none), written or added to what is
/// there. Sums of slices are added in their order, so the same bits come out every time.
void grouped_backward_weights(Stream, Numbers, const GroupedShape&, int slices, const void* src,
                              const void* diff_dst, float* sums, float* diff_weights,
                              float* diff_bias, bool add);

}  // namespace cputrain::cuda
