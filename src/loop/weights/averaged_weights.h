#pragma once

#include <functional>

#include "loop/parts.h"

namespace cputrain::loop {

/// Calls work() while the averages of the weights (OptimizerOptions::ema) lie in the place of the
/// weights, on all ranks, and puts both back. Meanwhile Parts::aside has the weights on rank 0.
/// Collective, between two steps; work() does not throw on some ranks alone.
void with_averages(Parts&, const std::function<void()>& work);

}  // namespace cputrain::loop
