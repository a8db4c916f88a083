#pragma once

#include <span>

#include "comm/communicator.h"
#include "compute/memory.h"

namespace cputrain::loop {

/// Whether no value is NaN or infinite. A network can hide such weights: a ReLU turns NaN into 0,
/// and its predictions mean nothing.
bool all_numbers(std::span<const float>);
bool all_numbers(std::span<const double>);
/// Collective: whether those of all ranks are, in arrays of this memory.
bool all_numbers(compute::Memory&, const Array&, comm::Communicator&);

}  // namespace cputrain::loop
