#pragma once

#include <string>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// "2 ranks x 12 threads": the ranks of a machine by their threads.
std::string ranks_by_threads(const std::vector<RankPlan>&);

/// "2 ranks x 2 threads make 4 threads on 2 hardware threads (...)": what is wrong with too many.
std::string too_many_threads(const MachineRanks&, const std::vector<RankPlan>&);

/// A quota in CPUs as people write it: 3 or 2.5.
std::string quota_text(double cpus);

/// A line for each reason why ranks compute on fewer threads than they were to.
std::vector<std::string> thread_limits(const std::vector<RankPlace>&, const std::vector<RankPlan>&);

/// What is wrong with a plan, each "what (why it matters); what to try".
std::vector<std::string> placement_warnings(const std::vector<RankPlace>&, const MachineRanks&,
                                            const std::vector<RankPlan>&, const PlacementRequest&);

}  // namespace cputrain::placement
