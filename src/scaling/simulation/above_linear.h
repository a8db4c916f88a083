#pragma once

#include <string>
#include <vector>

#include "scaling/cells/cells.h"
#include "scaling/simulation/cost_table.h"

namespace cputrain::simulation {

/// How the ranks of a simulated cell worked.
struct CellWork {
  int images_at_once = 1;            ///< most of a rank
  std::vector<std::string> sharded;  ///< dense layers that the ranks of a node compute together
};

/// Adds to what limits each cell why it is quicker than its CPUs explain, against the cell of its
/// row that has the fewest CPUs: where its efficiency is kAboveLinear (scaling/cells/explanation.h)
/// or more. Reasons are those that the simulation knows: dense layers that only one of the two
/// shards, micro-batches of another size that cost less an image; where neither holds, the part of
/// the budget that takes less CPU time. `work` has an entry for each cell.
void explain_above_linear(std::vector<cells::Cell>& cells, const std::vector<CellWork>& work,
                          const CostTable&);

}  // namespace cputrain::simulation
