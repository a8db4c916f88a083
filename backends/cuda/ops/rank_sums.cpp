#include "backends/cuda/ops/rank_sums.h"

#include <algorithm>

#include "comm/communicator.h"
#include "core/casts.h"

namespace cputrain::cuda {

RankSums::RankSums(comm::Communicator& communicator, int channels)
    : communicator_(communicator),
      channels_(to_size(channels)),
      device_(2 * channels_ * sizeof(double), "sums of ranks"),
      host_((2 * channels_ + 1) * sizeof(double) + 2 * channels_ * sizeof(float)) {}

/// Waits until the device is done with the host's numbers, also those that it was sent before.
template <class Merge>
void RankSums::fetch(Stream stream, const ChannelSums& own, const Merge& merge) {
  if (own.parts > 0) {
    merge(stream, own, static_cast<double*>(device_.data()));
    copy_async(host_.data(), device_.data(), device_.size(), stream);
  }
  done_.record(stream);
  done_.synchronize();
  if (own.parts == 0) std::ranges::fill(numbers(), 0.0);
}

ChannelSums RankSums::send(Stream stream, double positions) {
  auto* const sent = reinterpret_cast<float*>(numbers().data() + numbers().size());
  std::ranges::transform(numbers().first(2 * channels_), sent,
                         [](double number) { return static_cast<float>(number); });
  copy_async(device_.data(), sent, 2 * channels_ * sizeof(float), stream);
  return {.channels = to_int(channels_),
          .parts = 1,
          .positions = positions,
          .of_part = positions,
          .values = static_cast<float*>(device_.data())};
}

/// Sums of numbers and of their squares add up. In double their difference is exact enough unless
/// the mean is a million times the deviation, which floats do not have.
ChannelSums RankSums::join_moments(Stream stream, const ChannelSums& own) {
  fetch(stream, own, merge_moments);
  numbers().back() = own.positions;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double mean = first()[c];
    first()[c] = own.positions * mean;
    second()[c] += own.positions * mean * mean;
  }
  communicator_.sum(Array::of<double>(numbers()));
  const double positions = numbers().back();
  for (std::size_t c = 0; positions > 0 && c < channels_; ++c) {
    const double mean = first()[c] / positions;
    first()[c] = mean;
    second()[c] = std::max(0.0, second()[c] - positions * mean * mean);
  }
  return send(stream, positions);
}

ChannelSums RankSums::join_slopes(Stream stream, const ChannelSums& own, double positions) {
  fetch(stream, own, merge_slopes);
  communicator_.sum(Array::of<double>(numbers().first(2 * channels_)));
  return send(stream, positions);
}

}  // namespace cputrain::cuda
