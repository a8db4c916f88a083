#pragma once

#include <algorithm>
#include <cstddef>

#include "core/array.h"

namespace cputrain::mpi {

/// Calls f(Range) for consecutive pieces of [0, size) of at most `limit` elements: MPI counts are
/// ints, our arrays may be longer.
template <class F>
void for_pieces(std::size_t size, std::size_t limit, F&& f) {
  for (std::size_t begin = 0; begin < size; begin += limit) {
    f(Range{begin, std::min(size, begin + limit)});
  }
}

/// 2^30 elements, well below INT_MAX.
inline constexpr std::size_t kMaxCount = std::size_t{1} << 30;

}  // namespace cputrain::mpi
