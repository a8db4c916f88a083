#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "system/usage/work_meter.h"

namespace cputrain::system {

/// Writes that a thread of its own makes, in the order in which they were asked for, so that
/// callers do not wait for storage that is slow or does not answer. What waits is kept in memory up
/// to a bound; a caller with more waits, too, so nothing is lost. After the first failure no more
/// is written, and calls throw.
class WriteQueue {
 public:
  /// Some ten thousand lines of a log.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  /// The thread starts with the first write, and calls `on_thread_start` first, which throws
  /// nothing.
  explicit WriteQueue(std::function<void()> on_thread_start = {},
                      std::size_t most_bytes = kMostBytes);
  /// Waits for all that was asked for.
  ~WriteQueue();

  /// Asks for a write that keeps so many bytes in memory. It owns what it uses. Throws what the
  /// first write that failed threw.
  void add(std::size_t bytes, std::function<void()> write);
  /// The same for something small, without waiting for room. Where a write has failed it is
  /// destroyed without being made. Throws nothing.
  void post(std::function<void()> write);
  /// Waits until all is written. Throws what the first write that failed threw.
  void finish();
  /// Waits for so many seconds at most. Whether all is written.
  bool wait_for(double seconds);
  bool is_idle();
  /// Meaningful once a write was asked for: false where this process could have no more threads, so
  /// that callers make their writes.
  bool has_thread() const { return thread_.joinable(); }

  /// Whether a caller waits for space.
  bool is_full();
  const WorkMeter& meter() const { return meter_; }

 private:
  struct Task {
    std::size_t bytes = 0;
    std::function<void()> write;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool has_nothing() const { return tasks_.empty() && !working_; }
  void push(Task, Lock&);
  void start_thread();
  void make(const Task&, Lock&);
  void run();

  const std::function<void()> on_thread_start_;
  const std::size_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< for callers that wait for the thread
  std::condition_variable asked_;    ///< for the thread
  std::deque<Task> tasks_;
  std::size_t bytes_ = 0;  ///< the tasks', with the one that is being made
  bool working_ = false, sleeps_ = false, ends_ = false;
  int waiting_ = 0;  ///< callers that wait for space
  std::exception_ptr failure_;
  WorkMeter meter_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace cputrain::system
