#pragma once

#include <memory>

#include "compute/memory.h"
#include "exchange/gradient_sum.h"

namespace cputrain::exchange {

/// Any sum, for gradients that do not lie in the host's memory: algorithms and compression add up
/// on the host and send from there, so each range goes there and comes back, without waiting for
/// what else the device is at. Its buffer, memory for staging, holds `most` elements, the longest
/// range.
std::unique_ptr<GradientSum> make_staged_sum(compute::Memory&, std::size_t most, DType,
                                             std::unique_ptr<GradientSum> on_host);

}  // namespace cputrain::exchange
