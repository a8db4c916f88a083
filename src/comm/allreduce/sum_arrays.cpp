#include "comm/allreduce/sum_arrays.h"

#include <algorithm>
#include <cassert>

namespace cputrain::comm {
namespace {

/// By blocks that stay in the first-level cache, so that each source is read in one run.
template <class T>
void sum(std::span<const Array> src, const Array& dst) {
  constexpr std::size_t kBlock = 2048;
  T block[kBlock];
  T* const out = dst.as<T>().data();
  for (std::size_t begin = 0; begin < dst.size; begin += kBlock) {
    const std::size_t n = std::min(kBlock, dst.size - begin);
    std::copy_n(src[0].as<T>().data() + begin, n, block);
    for (const Array& array : src.subspan(1)) {
      const T* const in = array.as<T>().data() + begin;
      for (std::size_t i = 0; i < n; ++i) block[i] += in[i];
    }
    std::copy_n(block, n, out + begin);
  }
}

}  // namespace

void sum_plainly(std::span<const Array> src, const Array& dst) {
  assert(!src.empty());
  if (src.size() == 1 && src[0].data == dst.data) return;
  if (dst.dtype == DType::f32) {
    sum<float>(src, dst);
  } else {
    sum<double>(src, dst);
  }
}

}  // namespace cputrain::comm
