#include "sweep/grid_limits.h"

#include "core/error.h"
#include "core/text.h"

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
}

void check_size(const cells::SweepGrid& grid) {
  const double count = cells::count_cells(grid);
  if (count <= static_cast<double>(cells::kMostCells)) return;
  std::vector<std::string> flags;
  cells::for_each_list(grid, [&](const char* name, const auto& list) {
    if (list.size() > 1) flags.push_back(fmt::format("--{} {}", name, list_text(list)));
  });
  fail(ExitCode::usage,
       fmt::format("{}: {:.0f} cells, and at most {} are allowed; name fewer values",
                   join(flags, " "), count, cells::kMostCells));
}

}  // namespace cputrain::sweep
