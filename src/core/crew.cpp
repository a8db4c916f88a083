#include "core/crew.h"

#include <utility>

namespace cputrain {

Crew::Crew(int size) {
  for (int number = 1; number < size; ++number) {
    threads_.emplace_back([this, number](const std::stop_token& stop) { serve(number, stop); });
  }
}

Crew::~Crew() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void Crew::run(const std::function<void(int)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    busy_ = size() - 1;
    ++round_;
  }
  changed_.notify_all();
  attempt(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::attempt(int number) {
  try {
    (*work_)(number);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void Crew::serve(int number, const std::stop_token& stop) {
  unsigned long done = 0;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return round_ != done; })) {
    done = round_;
    lock.unlock();
    attempt(number);
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

}  // namespace cputrain
