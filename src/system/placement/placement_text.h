#pragma once

#include <string>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// "2 ranks x 2 threads make 4 threads on 2 hardware threads (...)": what is wrong with too many.
std::string too_many_threads(const MachineRanks&, const std::vector<RankPlan>&);

/// What is said of a machine's plan, whose ranks are planned: its summary, limits and warnings.
void describe(const std::vector<RankPlace>&, const MachineRanks&, const PlacementRequest&,
              Placement& plan);

}  // namespace cputrain::placement
