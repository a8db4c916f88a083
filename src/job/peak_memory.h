#pragma once

#include <optional>

#include "job/training_job.h"

namespace cputrain::job {

/// The most memory that ranks and nodes have held until now, and of a backend's own memory what
/// they took since the plan; nothing where a system does not say. Collective.
std::optional<train::PeakMemory> measure_peaks(const TrainingJob&);

}  // namespace cputrain::job
