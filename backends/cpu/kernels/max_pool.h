#pragma once

#include <cstdint>

#include "compute/executor/memory_plan.h"
#include "model/layer.h"

namespace cputrain::cpu {

/// Max pooling of blocked maps (blocks of 8 or 16 channels), on all threads; the ReLU behind it is
/// done in the same pass. The library's pooling does one thing at a time and takes twice as long.
struct MaxPoolShape {
  compute::SampleLayout src, dst;
  int size, stride;
  model::PadAmount rows, columns;
  bool relu;

  /// A layer's pool between such maps; `relu`: with the ReLU behind it.
  static MaxPoolShape of(const model::MaxPool&, const compute::SampleLayout& src,
                         const compute::SampleLayout& dst, bool relu);
  /// A window of 2 x 2 for every 2 x 2 pixels; the last row or column of odd extents is left over.
  bool halves() const {
    return size == 2 && stride == 2 && rows.before == 0 && rows.after == 0 && columns.before == 0 &&
           columns.after == 0;
  }

  static constexpr int kLargestSize = 16;  ///< positions in a window must fit a byte
};

/// How a map lies that max_pool reads.
enum class MapForm {
  blocked,        ///< [image][block][row][column][channel of the block], as all others
  channels_last,  ///< [image][row][column][channel]; only for maps whose blocks are full
};

/// `winners` gets the position in its window (row by row) of each maximum, in dst's layout; null
/// where no backward pass will follow.
void max_pool(const MaxPoolShape&, int images, const float* src, MapForm, float* dst,
              std::uint8_t* winners);

/// Writes all of diff_src: each gradient at its winner, zeros elsewhere. `dst` is what the forward
/// pass wrote, or what operators made of it in place that keep signs; only read where there is a
/// ReLU.
void max_pool_backward(const MaxPoolShape&, int images, const float* dst,
                       const std::uint8_t* winners, const float* diff_dst, float* diff_src);

}  // namespace cputrain::cpu
