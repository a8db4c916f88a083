#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the system lets this process have (`ulimit`, control groups), and what it can still get of
/// it.
namespace cputrain::system {

/// The limits that are set on memory and threads, as a shell names them: "ulimit -v 500000, ulimit
/// -u 100"; a control group's on threads, "pids.max 20"; and the stacks that OpenMP's threads ask
/// for, "OMP_STACKSIZE 8M". Empty where there are none.
std::string limits_text();

/// Whether a limit is set on the addresses or the memory of this process (`ulimit -v`, `-d`).
bool limits_addresses();

/// Bytes that a process will map. Addresses count for `ulimit -v`; those that no other process sees
/// for `ulimit -d`, too.
struct MemoryToCome {
  std::size_t own = 0, shared = 0;
  std::size_t all() const { return own + shared; }
};

/// So many more threads at once beside so much memory, until the end of the object: whether this
/// process can have them shows before libraries need theirs, which end the process where they
/// cannot. Nothing of the memory is touched, and none is asked for where no limit is set on it.
class TriedThreads {
 public:
  explicit TriedThreads(int count, const MemoryToCome& memory = {});
  ~TriedThreads();
  /// What it can have, which limits are set, and what to do; empty where all is to be had.
  const std::string& refusal() const { return refusal_; }

 private:
  TriedThreads() = default;
  // 0, or the error of the first that is refused.
  int reserve(const MemoryToCome&);
  int map(std::size_t bytes, int protection);
  int start(int count);

  std::vector<std::pair<void*, std::size_t>> reserved_;
  std::latch end_{1};  ///< what the threads wait for
  std::vector<pthread_t> threads_;
  std::string refusal_;
};

/// The same for a moment, by one process alone. Error(usage).
void require_threads(int count, const MemoryToCome& memory = {});

/// Bytes that programs on this machine, or in this container, can still get without swapping;
/// nothing where the system does not report it.
std::optional<std::size_t> available_memory();

/// Whether these are fewer because a control group (system/limits/control_group.h) allows no more.
bool group_limits_memory();

/// The innermost control group that limits this process's memory, by the kernel's number; 0: none.
/// Ranks of a machine that are in different ones, such as containers, have what each allows.
std::uint64_t memory_group();

/// After "300 MB are available", where that is so.
inline constexpr const char* kInControlGroup =
    " in its control group (the limit of a container or batch job)";

/// Bytes that this process holds for itself alone right now; 0 where the system does not report it.
std::size_t own_memory();

}  // namespace cputrain::system
