#include "datasets/work_arena.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>

namespace cputrain {

struct WorkArena::Arena {
  explicit Arena(int threads) : tbb(std::max(threads, 1)) {}
  tbb::task_arena tbb;
};

WorkArena::WorkArena(int threads) : arena_(std::make_unique<Arena>(threads)) {}
WorkArena::~WorkArena() = default;

void WorkArena::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  arena_->tbb.execute([&] { tbb::parallel_for(std::size_t{0}, count, body); });
}

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

}  // namespace cputrain
