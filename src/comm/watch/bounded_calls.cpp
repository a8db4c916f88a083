#include "comm/watch/bounded_calls.h"

#include <chrono>
#include <system_error>
#include <thread>

namespace cputrain::watch {

void BoundedCalls::make(const std::function<void()>& call, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto returned = [&] { return last_.wait_until(end) == std::future_status::ready; };
  if (last_.valid() && !returned()) return;
  std::packaged_task<void()> task(call);
  last_ = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {  // no more threads: better late than never
    return call();
  }
  returned();
}

}  // namespace cputrain::watch
