#include "exchange/buckets.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "exchange/exchange.h"

namespace cputrain::exchange {

std::vector<std::size_t> bucket_ends(const compute::ParameterLayout& layout,
                                     std::size_t bucket_bytes) {
  std::vector<Range> ranges;
  for (const compute::Parameter& parameter : layout.parameters) {
    if (parameter.learnt) ranges.push_back(parameter.range);
  }
  std::ranges::sort(ranges, {}, &Range::begin);

  // A bucket ends where its last parameter ends; padding up to the next one travels with the next
  // bucket, so that a bucket never waits for a parameter that it does not hold.
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  for (const Range& range : ranges) {
    if (range.end > begin && (range.end - begin) * size_of(layout.dtype) >= bucket_bytes) {
      ends.push_back(range.end);
      begin = range.end;
    }
  }
  if (begin < layout.gradient_size) ends.push_back(layout.gradient_size);
  return ends;
}

std::size_t longest_bucket(const std::vector<std::size_t>& ends) {
  std::size_t most = 0, begin = 0;
  for (const std::size_t end : ends) most = std::max(most, end - std::exchange(begin, end));
  return most;
}

Buckets::Buckets(std::vector<std::size_t> ends, Reduce reduce, bool overlap,
                 std::function<void()> on_thread_start)
    : ends_(std::move(ends)), reduce_(std::move(reduce)), after_(ends_.size()) {
  if (!overlap) return;
  thread_ = std::jthread([this, start = std::move(on_thread_start)](const std::stop_token& stop) {
    if (start) start();
    serve(stop);
  });
}

Buckets::~Buckets() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  changed_.notify_all();
  if (std::uncaught_exceptions() == 0) return;  // jthread joins
  // This rank failed in the middle of a step: the others may never answer what the thread waits
  // for. Leave it to the end of the process after a moment in which it usually gets done.
  std::unique_lock lock(mutex_);
  const bool idle =
      changed_.wait_for(lock, std::chrono::seconds(1), [&] { return done_ == ready_ || failure_; });
  lock.unlock();
  if (!idle) thread_.detach();
}

void Buckets::ready(std::size_t n, compute::Event* after) {
  const std::lock_guard lock(mutex_);
  for (; ready_ < ends_.size() && ends_[ready_] <= n; ++ready_) after_[ready_] = after;
  changed_.notify_all();
}

void Buckets::reduce(std::size_t i) { reduce_(bucket(i), after_[i]); }

void Buckets::finish() {
  if (!thread_.joinable()) {
    for (; done_ < ready_; ++done_) reduce(done_);
  }
  std::unique_lock lock(mutex_);
  assert(ready_ == ends_.size());
  changed_.wait(lock, [&] { return done_ == ready_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  ready_ = done_ = 0;
}

void Buckets::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return done_ < ready_; })) {
    const std::size_t next = done_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      reduce(next);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++done_;
    failure_ = failure;
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace cputrain::exchange
