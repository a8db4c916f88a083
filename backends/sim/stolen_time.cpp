// core/stolen_time.h of simulated CPUs: whoever has one has it alone.
#include "core/stolen_time.h"

namespace cputrain {

StolenTime::StolenTime(std::vector<int>) {}

double StolenTime::lap() { return 0; }

}  // namespace cputrain
