#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>

namespace cputrain::system {

/// Whether a thread is at work, and whether it gets on: writing to storage uses some CPU time
/// however slow that is, and none at all where it does not answer.
class WorkMeter {
 public:
  /// While it lives, the calling thread is at work. One at a time.
  class Busy {
   public:
    explicit Busy(WorkMeter& meter) : meter_(meter) {
      meter_.set({{::pthread_self(), ::gettid()}});
    }
    ~Busy() { meter_.set(std::nullopt); }
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
  struct Thread {
    pthread_t handle;
    int id;
  };
  void set(std::optional<Thread>);

  mutable std::mutex mutex_;  // a thread that is at work does not end while it is looked at
  std::optional<Thread> thread_;
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
