#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "datasets/work_arena.h"

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

}  // namespace cputrain
