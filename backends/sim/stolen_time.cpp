// system/stolen_time.h, system/cpu_wait.h and system/stopped_time.h of simulated CPUs: whoever has
// one has it alone and all the time.
#include "system/stolen_time.h"

#include "system/cpu_wait.h"
#include "system/stopped_time.h"

namespace cputrain::system {

StolenTime::StolenTime(std::vector<int>) {}

std::optional<double> StolenTime::part_since_last() { return std::nullopt; }

CpuWait::CpuWait() = default;

std::optional<double> CpuWait::part_since_last() { return std::nullopt; }

StoppedTime::StoppedTime() : last_(0) {}

double StoppedTime::seconds() { return 0; }

}  // namespace cputrain::system
