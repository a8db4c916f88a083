#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/kernels/instruction_set.h"
#include "core/array.h"

namespace cputrain::cpu {

/// Sums of so many floats are more than a core's own cache holds.
constexpr std::size_t kPastCache = std::size_t{1} << 20;

/// dst = src[0] + src[1] + ..., in that order, of equally long arrays of floats. Where dst is none
/// of them and has kPastCache or more, it is written past the cache.
void sum_in_parallel(InstructionSet, std::span<const Array> src, const Array& dst);

/// Adds to the first of `count` parts, which lie one behind the other, the others in their order.
/// Each has `size` floats.
void add_parts(float* parts, std::size_t count, std::size_t size);

}  // namespace cputrain::cpu
