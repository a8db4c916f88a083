#pragma once

#include "scaling/sweep/sweep_run.h"

/// What is in the folder of a sweep whose cells were measured elsewhere: by tasks, or by hand from
/// plan.txt. Nothing of it is taken from the machine that collects.
namespace cputrain::sweep {

/// The cell with the figures of its run folders; command and reason are those of its task
/// (cell.json), else the command is that of plan.txt. Runs of another kind of machine than the
/// table's are left out, with their reason.
cells::Cell collected_cell(const SweepPlan&, const cells::Cell&,
                           const cells::CellMachine& of_table);

/// The plan's table without cells. Machine, date and commit are those of machine.json, which sweeps
/// and tasks write. Without it, the machine is that of most runs' environment.json, or empty where
/// nothing is known; date and commit are empty.
cells::CellTable collected_table(const SweepPlan&);

}  // namespace cputrain::sweep
