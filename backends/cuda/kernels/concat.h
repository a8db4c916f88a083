#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// Maps one behind the other by their channels, and their gradients.
namespace cputrain::cuda {

/// Where a part lies: `channels` of its own are first .. first + channels - 1 of the whole's.
struct ConcatPart {
  int positions = 0;                       ///< all images'
  int channels = 1, first = 0, whole = 1;  ///< without padding
};

/// Copies the part into the whole, with the padding behind the last channel. Parts are copied one
/// after the other.
void concat_forward(Stream, Numbers, const ConcatPart&, const void* part, void* whole);

/// The part's gradient, with zeros as padding, written or added to what is there.
void concat_backward(Stream, Numbers, const ConcatPart&, const void* diff_whole, void* diff_part,
                     bool add);

}  // namespace cputrain::cuda
