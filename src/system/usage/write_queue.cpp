#include "system/usage/write_queue.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace cputrain::system {

WriteQueue::WriteQueue(std::function<void()> on_thread_start, std::size_t most_bytes)
    : on_thread_start_(std::move(on_thread_start)), most_bytes_(most_bytes) {}

WriteQueue::~WriteQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  asked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WriteQueue::add(std::size_t bytes, std::function<void()> write) {
  const auto has_space = [&] { return failure_ || has_nothing() || bytes_ + bytes <= most_bytes_; };
  Lock lock(mutex_);
  if (!has_space()) {
    ++waiting_;
    changed_.wait(lock, has_space);
    --waiting_;
  }
  if (failure_) std::rethrow_exception(failure_);
  push({bytes, std::move(write)}, lock);
}

void WriteQueue::post(std::function<void()> write) {
  Lock lock(mutex_);
  if (!failure_) push({0, std::move(write)}, lock);
}

void WriteQueue::finish() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return has_nothing(); });
  if (failure_) std::rethrow_exception(failure_);
}

bool WriteQueue::wait_for(double seconds) {
  Lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return has_nothing(); });
}

bool WriteQueue::is_idle() {
  const std::lock_guard lock(mutex_);
  return has_nothing();
}

bool WriteQueue::is_full() {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0;
}

void WriteQueue::push(Task task, Lock& lock) {
  if (!thread_.joinable()) start_thread();
  if (!thread_.joinable()) changed_.wait(lock, [this] { return has_nothing(); });
  bytes_ += task.bytes;
  if (!thread_.joinable()) return make(task, lock);
  tasks_.push_back(std::move(task));
  if (sleeps_) asked_.notify_one();
}

/// Where this process can have no more threads, the caller makes the write.
void WriteQueue::start_thread() {
  try {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "logs");  // for ps and strace
      if (on_thread_start_) on_thread_start_();
      run();
    });
  } catch (const std::system_error&) {
  }
}

void WriteQueue::make(const Task& task, Lock& lock) {
  working_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    const WorkMeter::Busy busy(meter_);
    task.write();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  working_ = false;
  bytes_ -= task.bytes;
  if (failure && !failure_) {
    failure_ = failure;
    tasks_.clear();
    bytes_ = 0;
  }
  changed_.notify_all();
}

void WriteQueue::run() {
  Lock lock(mutex_);
  for (;;) {
    sleeps_ = true;
    asked_.wait(lock, [this] { return !tasks_.empty() || ends_; });
    sleeps_ = false;
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    make(task, lock);
  }
}

}  // namespace cputrain::system
