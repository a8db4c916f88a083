#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulated/traffic.h"

/// What the emulated devices of this process have done and what the host has waited for, so that
/// tests can say how much a step asks of a GPU.
namespace cputrain::emulated {

struct Counts {
  struct Launches {
    std::uint64_t launches = 0, blocks = 0;
  };
  struct Bytes {
    std::uint64_t calls = 0, bytes = 0;
    void add(std::size_t of_call) {
      ++calls;
      bytes += of_call;
    }
  };

  /// A launch whose bytes were counted.
  struct CountedLaunch {
    std::string kernel;
    std::uint64_t blocks;
    Traffic traffic;
  };

  std::map<std::string, Launches> kernels{};  ///< by name
  std::vector<CountedLaunch> traffic{};       ///< of launches, in the order in which they were done
  std::uint64_t graphs = 0;                   ///< launched
  Bytes to_device{}, to_host{}, on_device{};  ///< copies
  Bytes cleared{};
  /// Events recorded, outside of captures.
  std::uint64_t timed_events = 0, untimed_events = 0;
  /// Calls in which the host waits, however short: for a stream, for an event, and in a copy to
  /// memory that is not pinned.
  std::uint64_t stream_waits = 0, event_waits = 0, copy_waits = 0;

  std::map<std::string, std::uint64_t> ranges{};  ///< of the whole process, by name

  std::uint64_t launches() const;
  std::uint64_t waits() const { return stream_waits + event_waits + copy_waits; }
};

/// Since the process began. Kernels, copies and clears count when they are done, so those of a
/// graph count each time that it is launched, and those that nobody waited for are not there yet.
Counts counts();
/// What came after `before` was taken.
Counts difference(const Counts& now, const Counts& before);
std::string json_of(const Counts&);

/// Has the counts written when the process ends, to the file that CPUTRAIN_EMULATED_COUNTS names,
/// whose %p stands for the process. Throws Error(output) where the file cannot be made.
void write_counts_at_exit();

}  // namespace cputrain::emulated
