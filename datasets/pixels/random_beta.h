#pragma once

#include <cstdint>

#include "core/random/random.h"

namespace cputrain::datasets {

/// A number in [0, 1] of the distribution Beta(alpha, alpha), alpha > 0, from words of the stream
/// from index `first` on: f(stream). Its bits depend on the machine's exp and log.
double beta_number(double alpha, const RandomStream& stream, std::uint32_t first);

}  // namespace cputrain::datasets
