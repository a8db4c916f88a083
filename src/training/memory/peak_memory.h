#pragma once

#include <optional>

#include "training/training.h"

namespace cputrain::training {

/// The most memory that ranks and nodes have held until now, and of a backend's own memory what
/// they took since the plan; nothing where a system does not report it. Collective.
std::optional<loop::PeakMemory> measure_peaks(const Training&);

}  // namespace cputrain::training
