#pragma once

#include <functional>
#include <span>

#include "core/array.h"

namespace cputrain::comm {

/// dst = src[0] + src[1] + ..., in that order, of equally long arrays; dst may be one of them.
using SumArrays = std::function<void(std::span<const Array> src, const Array& dst)>;
/// The same in plain loops on the calling thread.
void sum_plainly(std::span<const Array> src, const Array& dst);

}  // namespace cputrain::comm
