#include "backends/cuda/memory.h"

#include <utility>

#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// A DeviceBlock or a PinnedBlock, as the rest of the program takes memory.
template <class Owned>
class Block : public system::SharedBlock {
 public:
  explicit Block(Owned block) : block_(std::move(block)) {}
  std::span<std::byte> bytes() const override {
    return {block_.template as<std::byte>(), block_.size()};
  }

 private:
  Owned block_;
};

/// With the copy of what lies there, should they be weights.
class Arrays final : public Block<DeviceBlock> {
 public:
  Arrays(WeightCopies& copies, std::size_t bytes)
      : Block(DeviceBlock(bytes, "arrays")), copies_(copies) {
    copies_.add(this->bytes());
  }
  ~Arrays() override { copies_.remove(bytes()); }

 private:
  WeightCopies& copies_;
};

}  // namespace

std::unique_ptr<system::SharedBlock> take_block(std::size_t bytes, const char* name) {
  return std::make_unique<Block<DeviceBlock>>(DeviceBlock(bytes, name));
}

void ComputeStream::finish_call() {
  const std::lock_guard lock(mutex_);
  finished_.record(stream_.get());
}

void ComputeStream::hold_up(Stream other) const {
  const std::lock_guard lock(mutex_);
  finished_.hold_up(other);
}

void ComputeStream::spoil(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (spoilt_.empty()) spoilt_ = why;
}

void ComputeStream::check() const {
  const std::lock_guard lock(mutex_);
  if (!spoilt_.empty()) fail(ExitCode::internal, spoilt_);
}

DeviceMemory::DeviceMemory(int device, int sharers, Numbers numbers, const ComputeStream& compute)
    : device_(device), sharers_(sharers), compute_(compute), copies_(numbers) {}

std::unique_ptr<system::SharedBlock> DeviceMemory::allocate(std::size_t bytes) {
  use_device(device_);
  if (bytes == 0) return take_block(bytes, "arrays");
  auto block = std::make_unique<Arrays>(copies_, bytes);
  const std::lock_guard lock(mutex_);
  clear_async(block->bytes().data(), bytes, stream_.get());
  stream_.synchronize();
  return block;
}

std::unique_ptr<system::SharedBlock> DeviceMemory::staging(std::size_t bytes) {
  use_device(device_);
  return std::make_unique<Block<PinnedBlock>>(PinnedBlock(bytes));
}

/// The wait for calls is an event's, which costs no CPU and ends when sums of ranks are given up; a
/// copy of pageable memory would wait within the driver.
void DeviceMemory::transfer(const void* src, void* dst, std::size_t bytes, When when) {
  if (bytes == 0) return;
  use_device(device_);
  const std::lock_guard lock(mutex_);
  if (when == When::behind_calls) {
    compute_.hold_up(stream_.get());
    ready_.record(stream_.get());
    ready_.synchronize();
  }
  copy_async(dst, src, bytes, stream_.get());
  stream_.synchronize();
}

void DeviceMemory::fetch(const void* src, std::span<std::byte> dst, When when) {
  transfer(src, dst.data(), dst.size(), when);
  compute_.check();
}

void DeviceMemory::send(std::span<const std::byte> src, void* dst, When when) {
  transfer(src.data(), dst, src.size(), when);
  copies_.written({static_cast<std::byte*>(dst), src.size()});
}

void DeviceMemory::copy(const void* src, void* dst, std::size_t bytes) {
  transfer(src, dst, bytes, When::behind_calls);
  copies_.written({static_cast<std::byte*>(dst), bytes});
}

std::optional<std::size_t> DeviceMemory::available() const {
  use_device(device_);
  return free_memory() / to_size(sharers_);
}

}  // namespace cputrain::cuda
