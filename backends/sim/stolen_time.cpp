// core/stolen_time.h and core/cpu_wait.h of simulated CPUs: whoever has one has it alone.
#include "core/stolen_time.h"

#include "core/cpu_wait.h"

namespace cputrain {

StolenTime::StolenTime(std::vector<int>) {}

std::optional<double> StolenTime::part_since_last() { return std::nullopt; }

CpuWait::CpuWait() = default;

std::optional<double> CpuWait::part_since_last() { return std::nullopt; }

}  // namespace cputrain
