// system/lost_time/stolen_time.h and system/lost_time/cpu_wait.h for simulated CPUs: a rank has its
// own alone.
#include "system/lost_time/stolen_time.h"

#include "system/lost_time/cpu_wait.h"

namespace cputrain::system {

StolenTime::StolenTime(std::vector<int>) {}

std::optional<double> StolenTime::part_since_last() { return std::nullopt; }

CpuWait::CpuWait() = default;

std::optional<double> CpuWait::part_since_last() { return std::nullopt; }

}  // namespace cputrain::system
