#pragma once

#include "scaling/sweep/sweep_plan.h"
#include "system/file_lock.h"

namespace cputrain::sweep {

/// Opens the folder of a sweep: makes it, or finds the same sweep in it, or adds an extension's
/// cells to that. Error(usage) where it holds another one and `overwrite` is not given, or where
/// another sweep is at work in it. Several tasks may share it. Nothing where an extension's cells
/// were added to a sweep at work, which measures them: see is_extended().
std::optional<system::FileLock> open_sweep_folder(const SweepPlan&, bool overwrite,
                                                  system::FileLock::Kind);

/// Whether the folder's sweep has other cells by now than this plan of it.
bool is_extended(const SweepPlan&);

/// Held by a task as long as it measures a cell. Error(usage) where another one does.
system::FileLock lock_cell(const SweepPlan&, const cells::Cell&);

inline constexpr const char* kFlagsName = "sweep.json";
inline constexpr const char* kPlanName = "plan.txt";

/// The grid of the sweep that the folder holds. Error(usage) where it holds none.
cells::SweepGrid grid_there(const std::filesystem::path& folder);

/// Says in machine.json that cells are measured here, and gives the plan's table the date and the
/// commit that stand there. Error(usage) where others were measured on another kind of machine, or
/// with another build.
void settle_machine(SweepPlan&);

/// Writes cells.json with what tasks, and trainings by hand from plan.txt, have left in the folder;
/// whether it is another than before. Machine, date and commit are those of machine.json. Without
/// it, the machine is that of most runs' environment.json, or empty where nothing is known; date
/// and commit are empty.
bool collect(const SweepPlan&);

}  // namespace cputrain::sweep
