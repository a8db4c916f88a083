#include "comm/segments.h"

#include <cassert>

namespace cputrain {

namespace {

template <class T>
void add(T* __restrict dst, const T* __restrict src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] += src[i];
}

}  // namespace

void add_to(const Array& dst, const Array& src) {
  assert(dst.size == src.size && dst.dtype == src.dtype);
  if (dst.dtype == DType::f32) {
    add(dst.as<float>().data(), src.as<float>().data(), dst.size);
  } else {
    add(dst.as<double>().data(), src.as<double>().data(), dst.size);
  }
}

Array Segments::piece(std::size_t elements, DType dtype) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  return {memory_.get(), elements, dtype};
}

void Segments::exchange_and_add(Peers& peers, int to, const Array& out, int from, const Array& in) {
  const std::size_t most = kBytes / size_of(in.dtype);
  for (std::size_t begin = 0; begin < std::max(out.size, in.size); begin += most) {
    const auto at = [&](const Array& array) {
      return array.slice(std::min(begin, array.size), std::min(begin + most, array.size));
    };
    const Array mine = at(in), received = piece(mine.size, in.dtype);
    peers.exchange(to, at(out).bytes(), from, received.bytes());
    add_to(mine, received);
  }
}

}  // namespace cputrain
