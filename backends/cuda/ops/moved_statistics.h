#pragma once

#include <utility>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "core/casts.h"

namespace cputrain::cuda {

/// Moving statistics of all batch norms of a program that training passes have moved on the side,
/// in one array, so that one kernel publishes them.
class MovedStatistics {
 public:
  /// Where a layer's channels begin. All layers are added before the first of them is asked for.
  int add(int channels) { return std::exchange(count_, count_ + channels); }

  MovedStatistic* at(int first, Stream stream) {
    if (!block_.data()) {
      block_ = DeviceBlock(to_size(count_) * sizeof(MovedStatistic), "moved statistics");
      clear_async(block_.data(), block_.size(), stream);
    }
    return static_cast<MovedStatistic*>(block_.data()) + first;
  }
  void publish(Stream stream) {
    if (block_.data()) publish_statistics(stream, count_, at(0, stream));
  }

 private:
  int count_ = 0;
  DeviceBlock block_;
};

}  // namespace cputrain::cuda
