#pragma once

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <optional>

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

}  // namespace cputrain::system
