#include "sweep/grid_limits.h"

#include "core/error.h"

namespace cputrain::sweep {

void check_limits(const std::vector<cells::Cell>& cells, const cells::SweepGrid& grid) {
  for (const cells::Cell& cell : cells) {
    if (cell.batch <= cells::kMostBatch) continue;
    fail(ExitCode::usage,
         fmt::format("--batch-per-rank {} with --np {}: batches of up to {} over all ranks are "
                     "allowed, and {} ranks make {}",
                     list_text(grid.batches_per_rank), list_text(grid.cpus), cells::kMostBatch,
                     cell.ranks, cell.batch));
  }
  if (cells.size() > cells::kMostCells) {
    fail(ExitCode::usage,
         fmt::format("--np {} --threads {}: {} cells with these batches and backends, and at most "
                     "{} are allowed",
                     list_text(grid.cpus), list_text(grid.threads), cells.size(),
                     cells::kMostCells));
  }
}

}  // namespace cputrain::sweep
