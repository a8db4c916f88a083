#include "system/stopped_time.h"

#include <chrono>
#include <condition_variable>

#include "system/clock.h"

namespace cputrain::system {

StoppedTime::StoppedTime()
    : last_(steady_seconds()), thread_([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        const auto pause = std::chrono::duration<double>(kLook);
        while (!wake.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) look();
      }) {}

double StoppedTime::seconds() { return look(); }

double StoppedTime::look() {
  const std::lock_guard lock(mutex_);
  const double now = steady_seconds(), gap = now - last_;
  if (gap > kGap) stopped_ += gap;
  last_ = now;
  return stopped_;
}

}  // namespace cputrain::system
