#pragma once

#include <memory>
#include <optional>

#include "compute/backend.h"

namespace cputrain::testing {

/// A device's memory without a device: pages that nobody may touch but its own calls and those of
/// the backend that it belongs to. Whoever does ends by SIGSEGV, and addresses of anything else
/// are refused (std::logic_error), as those of the host mean nothing to a device.
class LockedMemory final : public compute::Memory {
 public:
  /// `room`: the most bytes that it gives out at once.
  explicit LockedMemory(std::optional<std::size_t> room = std::nullopt);

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override;
  void read(const void* src, std::span<std::byte> dst) override;
  void write(std::span<const std::byte> src, void* dst) override;
  void copy(const void* src, void* dst, std::size_t bytes) override;
  bool is_host() const override { return false; }
  std::optional<std::size_t> available() const override;

  /// While there is one, arrays may be touched: the device is at work.
  class Unlocked {
   public:
    explicit Unlocked(LockedMemory&);
    ~Unlocked();
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

   private:
    LockedMemory& memory_;
  };
  /// A call out of the device's work: arrays are locked again meanwhile.
  class Locked {
   public:
    explicit Locked(LockedMemory&);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    LockedMemory& memory_;
  };

  /// Throws std::logic_error for an array that lies elsewhere.
  void require_own(const Array&) const;

 private:
  class Areas;
  class Block;
  void require_own(const void* start, std::size_t bytes) const;

  std::shared_ptr<Areas> areas_;  ///< which blocks may outlive
};

/// The backend with all of its arrays in a LockedMemory: what trains on it would train on a device.
std::unique_ptr<compute::Backend> make_locked_backend(
    std::unique_ptr<compute::Backend>, std::optional<std::size_t> room = std::nullopt);

}  // namespace cputrain::testing
