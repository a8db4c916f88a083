#pragma once

#include <span>

#include "core/array.h"

namespace cputrain {

/// dst = src[0] + src[1] + ..., in that order, of equally long arrays of floats. Where dst is none
/// of them and long, it is written past the cache.
void sum_in_parallel(std::span<const Array> src, const Array& dst);

}  // namespace cputrain
