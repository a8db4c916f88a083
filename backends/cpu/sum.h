#pragma once

#include <cstddef>
#include <span>

#include "core/array.h"

namespace cputrain {

/// dst = src[0] + src[1] + ..., in that order, of equally long arrays of floats. Where dst is none
/// of them and long, it is written past the cache.
void sum_in_parallel(std::span<const Array> src, const Array& dst);

/// Adds to the first of `count` parts, which lie one behind the other, the others in their order.
/// Each has `size` floats.
void add_parts(float* parts, std::size_t count, std::size_t size);

}  // namespace cputrain
