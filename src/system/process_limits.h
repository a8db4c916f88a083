#pragma once

#include <cstddef>
#include <string>

/// What the system lets this process have (`ulimit`), and what it can still get of it.
namespace cputrain::system {

/// The limits that are set on memory and threads, as a shell names them: "ulimit -v 500000, ulimit
/// -u 100"; empty where there are none.
std::string limits_text();

/// Bytes that a process will map. Addresses count for `ulimit -v`; those that nobody else sees for
/// `ulimit -d`, too.
struct MemoryToCome {
  std::size_t own = 0, shared = 0;
  std::size_t all() const { return own + shared; }
};

/// Tries whether this process can have so many more threads at once beside so much memory, by
/// having both for a moment: libraries end the process where they cannot have theirs. Nothing of
/// the memory is touched, and none is asked for where no limit is set on it. Error(usage) saying
/// what it can have, which limits are set, and what to do.
void require_threads(int count, const MemoryToCome& memory = {});

}  // namespace cputrain::system
