#pragma once

#include <span>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/batch_norm/batch_norm.h"

namespace cputrain::comm {
class Communicator;
}

namespace cputrain::cuda {

/// Sums of a layer's channels over the images of all ranks. Ranks add up on the host, which waits
/// for the device meanwhile: passes that do so become no graphs.
class RankSums {
 public:
  RankSums(comm::Communicator& communicator, int channels);

  /// One part that has the moments of all ranks. `own` may have no positions.
  ChannelSums join_moments(Stream, const ChannelSums& own);
  /// The same of slopes, over so many positions of all ranks. `own` may have no values.
  ChannelSums join_slopes(Stream, const ChannelSums& own, double positions);

 private:
  /// What `merge` made of a rank's parts, on the host; zeros of no parts.
  template <class Merge>
  void fetch(Stream, const ChannelSums& own, const Merge& merge);
  /// As floats, which parts are.
  ChannelSums send(Stream, double positions);
  std::span<double> first() { return numbers().first(channels_); }
  std::span<double> second() { return numbers().subspan(channels_, channels_); }
  /// 2 x channels, and how many positions.
  std::span<double> numbers() {
    return {reinterpret_cast<double*>(host_.data()), 2 * channels_ + 1};
  }

  comm::Communicator& communicator_;
  std::size_t channels_;
  DeviceBlock device_;
  PinnedBlock host_;
  Event done_;
};

}  // namespace cputrain::cuda
