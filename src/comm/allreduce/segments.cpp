#include "comm/allreduce/segments.h"

#include <cassert>

namespace cputrain::comm {

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
    add_to(mine, theirs);
  }
}

}  // namespace cputrain::comm
