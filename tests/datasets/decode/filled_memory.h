#pragma once

#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace cputrain::datasets {

/// While it lives, what malloc() gives out begins with bytes of this value, also inside libraries.
/// (glibc's M_PERTURB; tests run with GLIBC_TUNABLES=glibc.malloc.tcache_count=0, as blocks that it
/// keeps for each thread are not filled. Sanitizers have an allocator of their own.)
class FilledHeap {
 public:
  explicit FilledHeap(std::uint8_t value) { mallopt(M_PERTURB, value ^ 0xFF); }
  FilledHeap(const FilledHeap&) = delete;
  FilledHeap& operator=(const FilledHeap&) = delete;
  ~FilledHeap() { mallopt(M_PERTURB, 0); }
};

/// Leaves bytes of this value on the stack, where the function that is called next has its frame.
[[gnu::noinline]] inline void fill_stack(std::uint8_t value) {
  std::array<volatile std::uint8_t, 64 * 1024> area;
  for (auto& byte : area) byte = value;
}

/// What work() returns over memory that is filled with `value`.
template <class Work>
[[gnu::noinline]] auto over_filled_memory(std::uint8_t value, Work work) {
  const FilledHeap heap(value);
  fill_stack(value);
  return work();
}

}  // namespace cputrain::datasets
