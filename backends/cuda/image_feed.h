#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/device/device.h"
#include "compute/image_feed.h"

namespace cputrain::cuda {

/// A micro-batch in a slot of the device's memory.
class DeviceBatch final : public compute::StagedImages {
 public:
  /// What is put into the stream from now on may read the batch.
  void begin_use(Stream) const;
  /// What was put into the stream so far has read it.
  void end_use(Stream);

  // On the device; one for each image, but for the bytes of the moves' sources.
  const std::uint8_t* bytes = nullptr;
  const compute::ImageMove* moves = nullptr;
  const std::int32_t* labels = nullptr;
  const std::uint32_t* samples = nullptr;
  const compute::MixedLabel* mixed = nullptr;  ///< null where labels are alone

 private:
  friend class DeviceFeed;
  Event arrived_;   ///< all of it, on the device
  Event consumed_;  ///< by the passes that read it
};

/// Copies go through pinned memory, one call for each micro-batch, in a stream of their own.
class DeviceFeed final : public compute::ImageFeed {
 public:
  /// The memory is the device's, and borrowed.
  DeviceFeed(int device, compute::Memory&, const compute::FeedSize&);
  ~DeviceFeed() override;

  static compute::FeedBytes bytes(const compute::FeedSize&);

  void keep(const std::function<const std::uint8_t*(std::size_t i)>& bytes_of) override;
  compute::StagedImages* stage(std::size_t slot, const compute::MicroBatch&,
                               std::span<const compute::ImageMove> moves) override;

 private:
  struct Slot {
    explicit Slot(std::size_t bytes) : pinned(bytes), block(bytes, "a micro-batch") {}
    PinnedBlock pinned;
    DeviceBlock block;  ///< the same: moves, labels, samples, mixed, bytes
    DeviceBatch batch;
  };

  int device_;
  compute::Memory& memory_;
  compute::FeedSize size_;
  DeviceBlock kept_;
  std::vector<std::unique_ptr<Slot>> slots_;
  OwnedStream stream_;  ///< for copies to slots
};

}  // namespace cputrain::cuda
