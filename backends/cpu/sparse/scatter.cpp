#include "backends/cpu/sparse/scatter.h"

#include <unistd.h>

#include "core/casts.h"

namespace cputrain::cpu::sparse {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

int fitting_blocks(int block) {
  const long cache = std::max(sysconf(_SC_LEVEL1_DCACHE_SIZE), 32768L);
  return std::max(1, to_int(cache * 3 / 4 / (9 * block * block * 4)));
}

ScatterPlan::ScatterPlan(const Kernels& k, int row_count, int tile_count, int in, int out)
    : kernels(k), rows(row_count), tiles(tile_count), in_blocks(in), out_blocks(out) {
  const int most = fitting_blocks(k.block);
  const int count = (in + most - 1) / most;
  chunk = (in + count - 1) / count;
}

std::size_t ScatterPlan::most_entries() const {
  return to_size((4 * tiles * chunk + 1) * kernels.block);
}

std::size_t ScatterPlan::partial_size() const {
  return to_size(2 * (2 * tiles + 2) * kernels.block);
}

std::size_t ScatterPlan::carry_size() const { return to_size(4 * tiles * kernels.block); }

std::size_t ScatterPlan::bytes() const {
  const auto out = to_size(out_blocks);
  const std::size_t partial = to_size(chunks()) * out * partial_size();
  const std::size_t carried = chunks() > 1 ? out * carry_size() : 0;
  const auto starts = to_size(4 * tiles + 1);
  return 2 * aligned(most_entries() * 4) + aligned(starts * 4) +
         (partial + carried) * sizeof(float);
}

ScatterPlan::Memory ScatterPlan::clear(std::byte* scratch) const {
  Memory memory{};
  const auto take = [&](std::size_t count) {
    std::byte* const begin = scratch;
    scratch += aligned(count * 4);
    return begin;
  };
  memory.lists.values = reinterpret_cast<float*>(take(most_entries()));
  memory.lists.offsets = reinterpret_cast<std::uint32_t*>(take(most_entries()));
  memory.lists.starts = reinterpret_cast<std::uint32_t*>(take(to_size(4 * tiles + 1)));
  const std::size_t partial = to_size(chunks() * out_blocks) * partial_size();
  memory.partial = reinterpret_cast<float*>(take(partial));
  std::fill_n(memory.partial, partial, 0.0f);
  memory.carry = reinterpret_cast<float*>(scratch);
  return memory;
}

ScatterRow ScatterPlan::sums_of(const Memory& memory, const float* weights, int begin,
                                int out) const {
  const auto kernel = to_size(9 * kernels.block * kernels.block);
  const auto index = to_size(begin / chunk * out_blocks + out);
  return {.lists = memory.lists,
          .tiles = tiles,
          .weights = weights + to_size(out * in_blocks + begin) * kernel,
          .partial = memory.partial + index * partial_size(),
          .carry = begin > 0 ? carry(memory, out) : nullptr};
}

}  // namespace cputrain::cpu::sparse
