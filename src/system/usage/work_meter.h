#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/lost_time.h"

/// What threads, the process and its disk do, and what keeps threads from work that they want. Who
/// does nothing may sleep for ever; who is short of a CPU or of pages will go on.
namespace cputrain::system {

/// A thread as the kernel describes it.
struct ThreadState {
  int thread = 0;
  std::string name{};
  char state = '?';          ///< R: runs, or waits for a CPU; S, D: sleeps; T: stopped (proc(5))
  std::uint64_t faults = 0;  ///< pages that it had to wait for, since they lay on a disk
  /// s: "time spent on the cpu", "time spent waiting on a runqueue" of schedstat (Linux,
  /// Documentation/scheduler/sched-stats.rst); nothing where the system does not count waiting.
  double ran = 0;
  std::optional<double> waited{};

  bool operator==(const ThreadState&) const = default;
};

/// Parses /proc/PID/task/THREAD/stat, and schedstat beside it, which may be empty; nothing for any
/// other text.
std::optional<ThreadState> thread_state(std::string_view stat, std::string_view schedstat);

/// All threads of a process, this one's by "self"; none where it is gone or not to be seen.
std::vector<ThreadState> thread_states(const std::string& process);

/// The part, 0 to 1, of the time for which threads wanted a CPU between two readings, in which they
/// waited for one: waited / (ran + waited), of all threads together. A thread that sleeps, or waits
/// for a disk, wants no CPU and does neither; one that spins in a barrier runs. One that began
/// meanwhile counts from its beginning; one that ended does not count. Nothing where no thread ran:
/// the system then does not count (or does not report it).
std::optional<double> waited_part(const std::vector<ThreadState>& before,
                                  const std::vector<ThreadState>& after);

/// What the threads of this process wait for a CPU.
PartSinceLast watch_cpu_wait();

/// What a process lacked between two looks at its threads.
struct Shortage {
  double cpu = 0;      ///< s for which a thread waited for a CPU; of the one that waited longest
  bool pages = false;  ///< pages had to be read back for it: memory is short, or a file is slow
};

/// `seconds` lie between them. A thread that is in one of them alone does not count.
Shortage shortage_between(const std::vector<ThreadState>& before,
                          const std::vector<ThreadState>& after, double seconds);

/// Whether a thread is at work, and whether it gets on: writing to storage uses some CPU time
/// however slow that is, and none at all where it does not answer.
class WorkMeter {
 public:
  /// While it lives, the calling thread is at work. One at a time.
  class Busy {
   public:
    explicit Busy(WorkMeter& meter) : meter_(meter) { meter_.set(::gettid()); }
    ~Busy() { meter_.set(0); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    WorkMeter& meter_;
  };

  /// CPU time of the thread that is at work, in all; nothing where none is. From any thread.
  std::optional<double> cpu_seconds() const;
  /// Whether the thread that is at work runs, or would if it had a CPU. From any thread.
  bool is_able() const;

 private:
  void set(int thread);

  mutable std::mutex mutex_;  // a thread that is at work does not end while it is looked at
  int thread_ = 0;            ///< as the system numbers it; 0: none is at work
  pthread_t handle_{};        ///< of that one
};

/// Whether the disk below a folder gets on: a file whose end waits for the disk (fsync) uses no CPU
/// time, and may wait for what others have written before it.
class DiskWrites {
 public:
  /// `root` stands for the system's / in tests, and `kind` for the folder's file system, a number
  /// of linux/magic.h.
  explicit DiskWrites(const std::filesystem::path& folder, const std::filesystem::path& root = "/",
                      std::optional<long> kind = std::nullopt);

  /// Writes that the disk has completed, whoever asked for them, as the system counts them. Of
  /// overlayfs and others that name no disk, those of all disks; 0 where none is known, as of a
  /// file system of a network. Touches no storage.
  std::uint64_t completed() const;
  /// Whether these are of one disk, the folder's own.
  bool is_one() const;

 private:
  std::filesystem::path counters_;  ///< a file of a line per disk; empty: none
};

/// CPU time of all threads of this process since it began. Unlike elapsed time, it hardly depends
/// on what else the machine does.
double cpu_seconds();

/// That of one thread, which lives; 0 where it is not known.
double cpu_seconds(pthread_t thread);

/// Bytes of memory that this process has held.
struct HeldMemory {
  /// Resident at the most until now (VmHWM), shared pages and those of files included: what `time
  /// -v` reports.
  std::size_t peak = 0;
  /// Its part of a machine's memory at that time: shared pages are divided by the processes that
  /// have them, and pages of files, which the system may drop, are left out. How many pages are
  /// shared is known of now alone, so what the peak had beyond them counts as its own.
  std::size_t part = 0;
};

/// Nothing where the system does not report it.
std::optional<HeldMemory> held_memory();

/// The peak counts from now on, as far as the system does that (/proc/self/clear_refs): for what
/// was held for something else than the work.
void forget_peak();

/// The same from the texts of /proc/PID/status and of /proc/PID/smaps_rollup.
std::optional<HeldMemory> held_memory_of(std::string_view status, std::string_view rollup);

}  // namespace cputrain::system
