#include "comm/point_to_point.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cputrain::comm {
namespace {

template <class T>
void add_elements(T* __restrict dst, const T* __restrict src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] += src[i];
}

}  // namespace

void PointToPoint::add(const Array& dst, const Array& src) {
  assert(dst.size == src.size && dst.dtype == src.dtype);
  if (dst.dtype == DType::f32) {
    add_elements(dst.as<float>().data(), src.as<float>().data(), dst.size);
  } else {
    add_elements(dst.as<double>().data(), src.as<double>().data(), dst.size);
  }
}

PointToPointGroup::PointToPointGroup(PointToPoint& all, std::vector<int> members)
    : all_(all),
      members_(std::move(members)),
      rank_(static_cast<int>(std::ranges::find(members_, all.rank()) - members_.begin())) {
  assert(rank_ < size());
}

}  // namespace cputrain::comm
