#include "backends/cuda/image_feed.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "compute/memory.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

std::size_t slot_bytes(const compute::FeedSize& size) {
  const std::size_t pixels = size.kept > 0 ? 0 : size.image.size();
  return size.images * (sizeof(compute::ImageMove) + sizeof(std::int32_t) + sizeof(std::uint32_t) +
                        sizeof(compute::MixedLabel) + pixels);
}

std::size_t kept_bytes(const compute::FeedSize& size) { return size.kept * size.image.size(); }

/// Puts arrays one behind the other into a slot, on the host and alike on the device.
class Packer {
 public:
  Packer(std::byte* host, void* device) : host_(host), device_(static_cast<std::byte*>(device)) {}

  /// Where the elements will lie on the device.
  template <class T>
  const T* add(std::span<const T> elements) {
    const auto* place = reinterpret_cast<const T*>(device_ + used_);
    add(elements.data(), elements.size_bytes());
    return place;
  }
  const std::uint8_t* add_images(std::span<const std::uint8_t* const> images, std::size_t each) {
    const auto* place = reinterpret_cast<const std::uint8_t*>(device_ + used_);
    for (const std::uint8_t* image : images) add(image, each);
    return place;
  }
  std::size_t used() const { return used_; }

 private:
  void add(const void* src, std::size_t bytes) {
    std::memcpy(host_ + used_, src, bytes);
    used_ += bytes;
  }

  std::byte *host_, *device_;
  std::size_t used_ = 0;
};

}  // namespace

void DeviceBatch::begin_use(Stream stream) const { arrived_.hold_up(stream); }
void DeviceBatch::end_use(Stream stream) { consumed_.record(stream); }

DeviceFeed::DeviceFeed(int device, compute::Memory& memory, const compute::FeedSize& size)
    : device_((use_device(device), device)), memory_(memory), size_(size) {
  if (size.kept > 0) kept_ = DeviceBlock(kept_bytes(size), "images");
  for (std::size_t i = 0; i < size.slots; ++i) {
    slots_.push_back(std::make_unique<Slot>(slot_bytes(size)));
  }
}

/// Copies and passes may still be reading and writing the slots.
DeviceFeed::~DeviceFeed() {
  try {
    use_device(device_);
    for (const auto& slot : slots_) slot->batch.consumed_.hold_up(stream_.get());
    stream_.synchronize();
  } catch (const Error&) {  // the next call that waits for a result throws it
  }
}

compute::FeedBytes DeviceFeed::bytes(const compute::FeedSize& size) {
  const std::size_t slots = size.slots * slot_bytes(size);
  return {.host = slots, .device = slots + kept_bytes(size)};
}

void DeviceFeed::keep(const std::function<const std::uint8_t*(std::size_t i)>& bytes_of) {
  constexpr std::size_t kPieceBytes = std::size_t{16} << 20;
  const std::size_t each = size_.image.size();
  const std::size_t at_once = std::max<std::size_t>(1, kPieceBytes / each);
  std::vector<std::byte> piece(std::min(at_once, size_.kept) * each);
  for (std::size_t begin = 0; begin < size_.kept; begin += at_once) {
    const std::size_t count = std::min(at_once, size_.kept - begin);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(piece.data() + i * each, bytes_of(begin + i), each);
    }
    memory_.write(std::span(piece).first(count * each), kept_.as<std::byte>() + begin * each);
  }
}

compute::StagedImages* DeviceFeed::stage(std::size_t slot, const compute::MicroBatch& batch,
                                         std::span<const compute::ImageMove> moves) {
  assert(batch.size() > 0 && moves.size() == batch.labels.size());
  use_device(device_);
  Slot& to = *slots_[slot];
  DeviceBatch& staged = to.batch;
  staged.arrived_.synchronize();  // what the pinned memory held before
  Packer packer(to.pinned.data(), to.block.data());
  staged.moves = packer.add(moves);
  staged.labels = packer.add(batch.labels);
  staged.samples = packer.add(batch.samples);
  staged.mixed = batch.mixed.empty() ? nullptr : packer.add(batch.mixed);
  staged.bytes = size_.kept > 0 ? kept_.as<const std::uint8_t>()
                                : packer.add_images(batch.images, size_.image.size());
  staged.consumed_.hold_up(stream_.get());
  copy_async(to.block.data(), to.pinned.data(), packer.used(), stream_.get());
  staged.arrived_.record(stream_.get());
  return &staged;
}

}  // namespace cputrain::cuda
