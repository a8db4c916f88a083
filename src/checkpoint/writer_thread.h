#pragma once

#include <functional>
#include <optional>
#include <string>

#include "system/usage/write_queue.h"

namespace cputrain::checkpoint {

/// What became of what was written.
struct WriterState {
  int written = 0;                     ///< checkpoints
  std::optional<std::string> failure;  ///< the last one's; nothing: it is there
  double cpu_seconds = 0;              ///< the thread's, in all
};

/// A thread that writes one thing after the other, while others train. Of rank 0.
class WriterThread {
 public:
  /// The thread is bound to the cores that its maker is bound to, unless `on_thread_start`, its
  /// first call, changes that. It throws nothing. std::system_error where no thread can be made.
  explicit WriterThread(std::function<void()> on_thread_start = {});

  /// Waits until nothing is being written any more; returns what became of it. `gets_on` is called
  /// each second in which the thread got further, however slowly.
  WriterState wait(const std::function<void()>& gets_on = {});
  /// The same for so many seconds at most.
  void wait_for(double seconds) { queue_.wait_for(seconds); }
  /// Whether something is being written now.
  bool busy() { return !queue_.is_idle(); }
  const system::WorkMeter& meter() const { return queue_.meter(); }
  /// Calls `write` on the thread, once everything before it is done. It may throw Error, which is a
  /// failure of this one.
  void start(std::function<void()> write);

 private:
  WriterState state_;         ///< the thread's, while it is busy
  system::WriteQueue queue_;  // last: its end waits for all that was started
};

}  // namespace cputrain::checkpoint
