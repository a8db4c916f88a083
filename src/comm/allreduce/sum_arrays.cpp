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

Array Segments::received(std::size_t elements, DType dtype) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  return {memory_.get(), elements, dtype};
}

void Segments::exchange_and_add(PointToPoint& peers, int to, const Array& out, int from,
                                const Array& in) {
  const std::size_t most = kBytes / size_of(in.dtype);
  for (std::size_t begin = 0; begin < std::max(out.size, in.size); begin += most) {
    const auto segment = [&](const Array& array) {
      return array.slice(std::min(begin, array.size), std::min(begin + most, array.size));
    };
    const Array mine = segment(in), theirs = received(mine.size, in.dtype);
    peers.exchange(to, segment(out).bytes(), from, theirs.bytes());
    peers.add(mine, theirs);
  }
}

}  // namespace cputrain::comm
