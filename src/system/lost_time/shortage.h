#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What keeps threads from work that they want to do. Who does nothing may sleep for ever; who is
/// short of a CPU or of pages will go on.
namespace cputrain::system {

/// A thread as the kernel describes it.
struct ThreadState {
  int thread = 0;
  std::string name{};
  char state = '?';          ///< R: runs, or waits for a CPU; S, D: sleeps; T: stopped (proc(5))
  std::uint64_t faults = 0;  ///< pages that it had to wait for, since they lay on a disk
  double ran = 0;            ///< s, of CPU time
  std::optional<double> waited{};  ///< s, for a CPU; nothing where the system does not count it

  bool operator==(const ThreadState&) const = default;
};

/// Parses /proc/PID/task/THREAD/stat, and schedstat beside it, which may be empty; nothing for any
/// other text.
std::optional<ThreadState> thread_state(std::string_view stat, std::string_view schedstat);

/// A thread of a process, of this one by "self"; in state '?' where it is gone or not to be seen.
ThreadState state_of_thread(const std::string& process, int thread);

/// All threads of a process, this one's by "self"; none where it is gone or not to be seen.
std::vector<ThreadState> thread_states(const std::string& process);

/// What a process lacked between two looks at its threads.
struct Shortage {
  double cpu = 0;      ///< s for which a thread waited for a CPU; of the one that waited longest
  bool pages = false;  ///< pages had to be read back for it: memory is short, or a file is slow
};

/// `seconds` lie between them. A thread that is in one of them alone does not count.
Shortage shortage_between(const std::vector<ThreadState>& before,
                          const std::vector<ThreadState>& after, double seconds);

}  // namespace cputrain::system
