// core/stolen_time.h of simulated CPUs: whoever has one has it alone.
#include "core/stolen_time.h"

namespace cputrain {

StolenTime::StolenTime(std::vector<int>) {}

std::optional<double> StolenTime::part_since_last() { return std::nullopt; }

}  // namespace cputrain
