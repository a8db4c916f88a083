#include "checkpoint/writer_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace cputrain::checkpoint {
namespace {

/// Threads that train go first: a step of all ranks lasts as long as that of the slowest. Linux has
/// a nice value per thread, and takes the priority of reading and writing from it, too. Not the
/// lowest: a process that is asked to end waits for this thread, beside others that spin. Under
/// `nice` the threads that train are far behind themselves, and this one is a little more so.
void go_behind_others() {
  constexpr int kNice = 10, kBehind = 2, kLowest = 19;
  const auto thread = static_cast<id_t>(::gettid());
  const int now = ::getpriority(PRIO_PROCESS, thread);
  const int nice = std::min(kLowest, std::max(kNice, now + kBehind));
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, nice));
  static_cast<void>(::pthread_setname_np(::pthread_self(), "checkpoints"));  // for ps and strace
}

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<std::string> failure_of(const std::function<void()>& write,
                                      system::WorkMeter& meter) {
  const system::WorkMeter::Busy busy(meter);
  try {
    write();
    return std::nullopt;
  } catch (const std::exception& error) {  // Error, and no memory
    return error.what();
  }
}

}  // namespace

WriterThread::WriterThread(std::function<void()> on_thread_start)
    : thread_([this, begin = std::move(on_thread_start)] {
        go_behind_others();
        if (begin) begin();
        run();
      }) {}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

WriterState WriterThread::wait(const std::function<void()>& gets_on) {
  const auto done = [this] { return tasks_.empty() && !working_; };
  std::unique_lock lock(mutex_);
  for (std::optional<double> before; !changed_.wait_for(lock, std::chrono::seconds(1), done);) {
    const std::optional<double> now = meter_.cpu_seconds();
    if (gets_on && now != std::exchange(before, now)) gets_on();
  }
  return state_;
}

void WriterThread::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return tasks_.empty() && !working_; });
}

bool WriterThread::busy() {
  const std::lock_guard lock(mutex_);
  return working_ || !tasks_.empty();
}

void WriterThread::start(std::function<void()> write) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(write));
  }
  changed_.notify_all();
}

void WriterThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !tasks_.empty() || ends_; });
    if (tasks_.empty()) return;
    const std::function<void()> write = std::exchange(tasks_.front(), {});
    tasks_.pop_front();
    working_ = true;
    lock.unlock();
    std::optional<std::string> failure = failure_of(write, meter_);
    lock.lock();
    working_ = false;
    state_.written += failure ? 0 : 1;
    state_.failure = std::move(failure);
    state_.cpu_seconds = thread_cpu_seconds();
    changed_.notify_all();
  }
}

}  // namespace cputrain::checkpoint
