#include "backends/topology/binding.h"

#include <sched.h>

#include <algorithm>
#include <memory>

#include "core/casts.h"

namespace cputrain::topology {

namespace {
struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
}  // namespace

bool bind_this_thread(const std::vector<int>& cpus) {
  if (cpus.empty()) return false;
  // The kernel's call directly: hwloc would read the whole machine again first.
  const auto count = to_size(std::ranges::max(cpus)) + 1;
  const std::unique_ptr<cpu_set_t, FreeSet> set(CPU_ALLOC(count));
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  if (!set) return false;
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) CPU_SET_S(to_size(cpu), bytes, set.get());
  return sched_setaffinity(0, bytes, set.get()) == 0;
}

}  // namespace cputrain::topology
