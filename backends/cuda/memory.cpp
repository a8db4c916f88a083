#include "backends/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

std::span<std::byte> bytes_of(const DeviceBlock& block) {
  return {block.as<std::byte>(), block.size()};
}

class Block final : public system::SharedBlock {
 public:
  Block(std::size_t bytes, const char* name) : block_(bytes, name) {}
  std::span<std::byte> bytes() const override { return bytes_of(block_); }

 private:
  DeviceBlock block_;
};

/// Calls piece(i, offset, bytes) for the pieces of a range, in order.
template <class Call>
void in_pieces(std::size_t bytes, const Call& piece) {
  for (std::size_t begin = 0, i = 0; begin < bytes; begin += kPieceBytes, ++i) {
    piece(i, begin, std::min(kPieceBytes, bytes - begin));
  }
}

}  // namespace

std::unique_ptr<system::SharedBlock> take_block(std::size_t bytes, const char* name) {
  return std::make_unique<Block>(bytes, name);
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
    : device_(device), sharers_(sharers), compute_(compute), copies_(numbers) {
  for (Piece& piece : pieces_) piece.block = PinnedBlock(kPieceBytes);
}

/// With the copy of what lies there, should they be weights.
class DeviceMemory::Arrays final : public system::SharedBlock {
 public:
  Arrays(WeightCopies& copies, std::size_t bytes) : copies_(copies), block_(bytes, "arrays") {
    copies_.add(bytes_of(block_));
  }
  ~Arrays() override { copies_.remove(bytes_of(block_)); }
  std::span<std::byte> bytes() const override { return bytes_of(block_); }

 private:
  WeightCopies& copies_;
  DeviceBlock block_;
};

std::unique_ptr<system::SharedBlock> DeviceMemory::allocate(std::size_t bytes) {
  use_device(device_);
  if (bytes == 0) return take_block(bytes, "arrays");
  auto block = std::make_unique<Arrays>(copies_, bytes);
  const std::lock_guard lock(mutex_);
  clear_async(block->bytes().data(), bytes, stream_.get());
  stream_.synchronize();
  return block;
}

class DeviceMemory::Staging final : public system::SharedBlock {
 public:
  Staging(DeviceMemory& memory, std::size_t bytes) : memory_(memory), block_(bytes) {
    const std::lock_guard lock(memory_.mutex_);
    memory_.staging_.emplace(block_.data(), bytes);
  }
  ~Staging() override {
    const std::lock_guard lock(memory_.mutex_);
    memory_.staging_.erase(block_.data());
  }
  std::span<std::byte> bytes() const override { return {block_.data(), block_.size()}; }

 private:
  DeviceMemory& memory_;
  PinnedBlock block_;
};

std::unique_ptr<system::SharedBlock> DeviceMemory::staging(std::size_t bytes) {
  use_device(device_);
  return std::make_unique<Staging>(*this, bytes);
}

bool DeviceMemory::is_staging(std::span<const std::byte> bytes) const {
  auto block = staging_.upper_bound(bytes.data());
  if (block == staging_.begin()) return false;
  --block;
  return bytes.data() + bytes.size() <= block->first + block->second;
}

std::unique_lock<std::mutex> DeviceMemory::begin_copy(When when) {
  use_device(device_);
  std::unique_lock lock(mutex_);
  if (when == When::behind_calls) compute_.hold_up(stream_.get());
  return lock;
}

/// One piece is on its way while the one before it is copied to where it belongs.
void DeviceMemory::fetch(const void* src, std::span<std::byte> dst, When when) {
  const auto lock = begin_copy(when);
  if (is_staging(dst)) {
    copy_async(dst.data(), src, dst.size(), stream_.get());
    stream_.synchronize();
    return compute_.check();
  }
  std::size_t last_begin = 0, last_bytes = 0;
  Piece* last = nullptr;
  const auto deliver = [&] {
    if (!last) return;
    last->arrived.synchronize();
    std::memcpy(dst.data() + last_begin, last->block.data(), last_bytes);
  };
  in_pieces(dst.size(), [&](std::size_t i, std::size_t begin, std::size_t bytes) {
    Piece& piece = pieces_[i % 2];
    copy_async(piece.block.data(), static_cast<const std::byte*>(src) + begin, bytes,
               stream_.get());
    piece.arrived.record(stream_.get());
    deliver();
    last = &piece;
    last_begin = begin;
    last_bytes = bytes;
  });
  deliver();
  compute_.check();
}

void DeviceMemory::send(std::span<const std::byte> src, void* dst, When when) {
  const auto lock = begin_copy(when);
  if (is_staging(src)) {
    copy_async(dst, src.data(), src.size(), stream_.get());
  } else {
    send_in_pieces(src, dst);
  }
  stream_.synchronize();
  copies_.written({static_cast<std::byte*>(dst), src.size()});
}

void DeviceMemory::send_in_pieces(std::span<const std::byte> src, void* dst) {
  in_pieces(src.size(), [&](std::size_t i, std::size_t begin, std::size_t bytes) {
    Piece& piece = pieces_[i % 2];
    if (i >= 2) piece.arrived.synchronize();
    std::memcpy(piece.block.data(), src.data() + begin, bytes);
    copy_async(static_cast<std::byte*>(dst) + begin, piece.block.data(), bytes, stream_.get());
    piece.arrived.record(stream_.get());
  });
}

void DeviceMemory::copy(const void* src, void* dst, std::size_t bytes) {
  if (bytes == 0) return;
  const auto lock = begin_copy(When::behind_calls);
  copy_async(dst, src, bytes, stream_.get());
  stream_.synchronize();
  copies_.written({static_cast<std::byte*>(dst), bytes});
}

std::optional<std::size_t> DeviceMemory::available() const {
  use_device(device_);
  return free_memory() / to_size(sharers_);
}

}  // namespace cputrain::cuda
