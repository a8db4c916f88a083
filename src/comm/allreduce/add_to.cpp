#include <cassert>

#include "comm/allreduce/sum_arrays.h"

namespace cputrain::comm {
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

}  // namespace cputrain::comm
