#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "compute/program.h"
#include "core/shape.h"

/// How images get to a device while it computes.
namespace cputrain::compute {

/// An image as pixels of another one, its source, whose bytes are moved and not computed. Pixel
/// (y, x) is the source's pixel number first + y * down + x * across, counted row by row; outside
/// rows [top, bottom) and columns [left, right) it is black.
struct alignas(16) ImageMove {
  std::uint32_t source = 0;  ///< which of many images
  std::int32_t first = 0, down = 0, across = 1;
  std::int32_t top = 0, bottom = 0, left = 0, right = 0;

  bool operator==(const ImageMove&) const = default;
};

/// The source as it is.
inline ImageMove whole_image(std::uint32_t source, const Shape& image) {
  return {.source = source, .down = image.width, .bottom = image.height, .right = image.width};
}

/// What a feed has room for.
struct FeedSize {
  Shape image;
  std::size_t images = 0;  ///< in the largest micro-batch
  std::size_t slots = 1;   ///< micro-batches at a time
  std::size_t kept = 0;    ///< images that stay on the device, so that micro-batches send no bytes
};

/// Bytes of images on their way: of the host's memory, and of the device's.
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
