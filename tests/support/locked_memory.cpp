#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "core/error.h"
#include "tests/support/locked_backend.h"

namespace cputrain::testing {

/// All pages that are given out, and how many are at work on them.
class LockedMemory::Areas {
 public:
  explicit Areas(std::optional<std::size_t> room) : room_(room) {}

  std::byte* add(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (room_ && bytes > *room_) fail(ExitCode::internal, "no room in the locked memory");
    void* const start =
        mmap(nullptr, bytes, users_ > 0 ? kOpen : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) fail(ExitCode::internal, "no pages for the locked memory");
    if (room_) *room_ -= bytes;
    areas_[static_cast<std::byte*>(start)] = bytes;
    return static_cast<std::byte*>(start);
  }

  void remove(std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    areas_.erase(bytes.data());
    munmap(bytes.data(), bytes.size());
    if (room_) *room_ += bytes.size();
  }

  void begin_use() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) protect(kOpen);
  }
  void end_use() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) protect(PROT_NONE);
  }

  bool hold(const std::byte* start, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    auto area = areas_.upper_bound(const_cast<std::byte*>(start));
    if (area == areas_.begin()) return false;
    --area;
    return start + bytes <= area->first + area->second;
  }

  std::optional<std::size_t> room() const {
    const std::lock_guard lock(mutex_);
    return room_;
  }

 private:
  static constexpr int kOpen = PROT_READ | PROT_WRITE;

  void protect(int how) {
    for (const auto& [start, bytes] : areas_) {
      if (mprotect(start, bytes, how) != 0) throw std::logic_error("mprotect fails");
    }
  }

  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> areas_;
  int users_ = 0;
  std::optional<std::size_t> room_;  ///< that is left
};

class LockedMemory::Block final : public system::SharedBlock {
 public:
  Block(std::shared_ptr<Areas> areas, std::size_t bytes)
      : areas_(std::move(areas)), bytes_(areas_->add(bytes), bytes) {}
  ~Block() override { areas_->remove(bytes_); }
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Areas> areas_;
  std::span<std::byte> bytes_;
};

namespace {

class NoBlock final : public system::SharedBlock {
 public:
  std::span<std::byte> bytes() const override { return {}; }
};

}  // namespace

LockedMemory::LockedMemory(std::optional<std::size_t> room)
    : areas_(std::make_shared<Areas>(room)) {}

std::unique_ptr<system::SharedBlock> LockedMemory::allocate(std::size_t bytes) {
  if (bytes == 0) return std::make_unique<NoBlock>();
  return std::make_unique<Block>(areas_, bytes);
}

void LockedMemory::read(const void* src, std::span<std::byte> dst) {
  require_own(src, dst.size());
  const Unlocked unlocked(*this);
  if (!dst.empty()) std::memcpy(dst.data(), src, dst.size());
}

void LockedMemory::write(std::span<const std::byte> src, void* dst) {
  require_own(dst, src.size());
  const Unlocked unlocked(*this);
  if (!src.empty()) std::memcpy(dst, src.data(), src.size());
}

void LockedMemory::copy(const void* src, void* dst, std::size_t bytes) {
  require_own(src, bytes);
  require_own(dst, bytes);
  const Unlocked unlocked(*this);
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

std::optional<std::size_t> LockedMemory::available() const { return areas_->room(); }

void LockedMemory::require_own(const void* start, std::size_t bytes) const {
  if (bytes == 0 || areas_->hold(static_cast<const std::byte*>(start), bytes)) return;
  throw std::logic_error("an array that does not lie in the backend's memory");
}

void LockedMemory::require_own(const Array& array) const {
  require_own(array.data, array.size * size_of(array.dtype));
}

LockedMemory::Unlocked::Unlocked(LockedMemory& memory) : memory_(memory) {
  memory_.areas_->begin_use();
}
LockedMemory::Unlocked::~Unlocked() { memory_.areas_->end_use(); }
LockedMemory::Locked::Locked(LockedMemory& memory) : memory_(memory) { memory_.areas_->end_use(); }
LockedMemory::Locked::~Locked() { memory_.areas_->begin_use(); }

}  // namespace cputrain::testing
