#pragma once

#include <span>

#include "comm/communicator.h"
#include "core/array.h"

namespace cputrain {

/// Whether all values are numbers: none is NaN or infinite. A network can hide such weights: a ReLU
/// turns NaN into 0, and its answers are numbers that mean nothing.
bool all_numbers(std::span<const float>);
bool all_numbers(std::span<const double>);
bool all_numbers(const Array&);
/// Collective: whether those of all ranks are.
bool all_numbers(const Array&, Communicator&);

}  // namespace cputrain
