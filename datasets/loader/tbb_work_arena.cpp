#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "core/casts.h"
#include "datasets/loader/work_arena.h"

namespace cputrain::datasets {

/// TBB starts no more threads than the process may use hardware threads, and warns about it on
/// standard error. A user may ask for more, so that must be allowed first.
struct WorkArena::Arena {
  explicit Arena(int threads) : tbb(std::max(threads, 1)) {
    if (threads <= tbb::this_task_arena::max_concurrency()) return;
    more.emplace(tbb::global_control::max_allowed_parallelism, to_size(threads));
  }
  std::optional<tbb::global_control> more;
  tbb::task_arena tbb;
};

WorkArena::WorkArena(int threads) : arena_(std::make_unique<Arena>(threads)) {}
WorkArena::~WorkArena() = default;

void WorkArena::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  arena_->tbb.execute([&] { tbb::parallel_for(std::size_t{0}, count, body); });
}

}  // namespace cputrain::datasets
