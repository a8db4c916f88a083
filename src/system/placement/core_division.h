#pragma once

#include <optional>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// One rank's part of a mask that several share.
struct CorePart {
  std::vector<int> cpus;                 ///< hardware threads, ascending
  std::optional<int> communication_cpu;  ///< on a core that is not among `cpus`
};

/// What a rank wants of it.
struct CoreWish {
  int threads = 1;
  bool communication_core = false;
};

/// Divides the hardware threads of one mask between the ranks that share it, in their order: whole
/// cores while there are enough, then single hardware threads, a core's two side by side. Ranks are
/// spread over the NUMA nodes and stay inside one where one has room. Nothing where the mask has
/// too few hardware threads.
std::optional<std::vector<CorePart>> divide_cores(const RankPlace& mask,
                                                  const std::vector<CoreWish>&);

}  // namespace cputrain::placement
