#pragma once

#include <cstddef>
#include <cstdint>

namespace cputrain::emulated {

/// Bytes that a launch reads and writes in the device's memory. Shared memory, a thread's own stack
/// and what copies move are no part of it.
struct Traffic {
  static constexpr std::size_t kSectorBytes = 32;  ///< of which a GPU's memory hands out whole ones
  struct Way {
    std::uint64_t bytes = 0;    ///< of every access of every thread
    std::uint64_t sectors = 0;  ///< that they lie in, each once: what a cache of any size leaves
    Way& operator+=(const Way& other) {
      bytes += other.bytes;
      sectors += other.sectors;
      return *this;
    }
  };
  Way read, written;
};

/// Accesses of a kernel count from here on, if they are to be counted at all.
void begin_traffic(bool counts);
/// What there was since then.
Traffic end_traffic();

/// An access of a thread; `offset` from the beginning of the devices' memory. An atomic operation
/// is both.
void count_read(std::size_t offset, std::size_t bytes);
void count_write(std::size_t offset, std::size_t bytes);

}  // namespace cputrain::emulated
