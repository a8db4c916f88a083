// For ThreadSanitizer: libtbb is not instrumented, so handing work over inside it looks like a
// race. The same contract with threads of the standard library, started for each call.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/casts.h"
#include "datasets/loader/work_arena.h"

namespace cputrain::datasets {

struct WorkArena::Arena {
  std::size_t threads;
};

WorkArena::WorkArena(int threads) : arena_(new Arena{to_size(std::max(threads, 1))}) {}
WorkArena::~WorkArena() = default;

void WorkArena::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;  // guards failure
  const auto work = [&] {
    try {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) body(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(arena_->threads, count); ++t) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cputrain::datasets
