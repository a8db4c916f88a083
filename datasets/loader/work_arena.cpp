#include "datasets/loader/work_arena.h"

#include <atomic>
#include <chrono>
#include <future>

namespace cputrain::datasets {

void WorkArena::for_each(std::size_t count, const std::function<void(std::size_t)>& body,
                         const std::function<void()>& report) {
  std::atomic<bool> stopped{false};
  auto work = std::async(std::launch::async, [&] {
    for_each(count, [&](std::size_t i) {
      if (!stopped) body(i);
    });
  });
  try {
    while (work.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) report();
  } catch (...) {
    stopped = true;
    work.wait();
    throw;
  }
  work.get();
  report();
}

}  // namespace cputrain::datasets
