#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "compute/image_move.h"
#include "compute/program.h"

/// How images get to a device while it computes.
namespace cputrain::compute {

/// What a feed has room for.
struct FeedSize {
  Shape image;
  std::size_t images = 0;  ///< in the largest micro-batch
  std::size_t slots = 1;   ///< micro-batches at a time
  std::size_t kept = 0;    ///< images that stay on the device, so that micro-batches send no bytes
};

/// Bytes of a feed: of the host's memory, and of the device's.
struct FeedBytes {
  std::size_t host = 0, device = 0;
};

/// Sends micro-batches to a device, on a thread of its own if need be. Its memory is freed with it,
/// and with that all that it staged.
class ImageFeed {
 public:
  virtual ~ImageFeed() = default;

  /// Sends the FeedSize::kept images, once, before any micro-batch: image i is what `bytes_of(i)`
  /// returns until it is called again, H*W*3 bytes.
  virtual void keep(const std::function<const std::uint8_t*(std::size_t i)>& bytes_of) = 0;

  /// Begins to send a micro-batch with at least one image; the host's memory may change when it
  /// returns. `moves`, one for each image, name as source a kept image, where the feed has any,
  /// else one of the batch. A slot may be filled again once the passes over its last micro-batch
  /// were enqueued, whether the device has come to them or not.
  virtual StagedImages* stage(std::size_t slot, const MicroBatch& batch,
                              std::span<const ImageMove> moves) = 0;
};

/// Makes feeds for the programs of a backend that computes on a device.
class ImageFeeder {
 public:
  virtual ~ImageFeeder() = default;
  /// Error(internal) where there is no room.
  virtual std::unique_ptr<ImageFeed> make_feed(const FeedSize&) = 0;
  virtual FeedBytes feed_bytes(const FeedSize&) const = 0;
};

}  // namespace cputrain::compute
