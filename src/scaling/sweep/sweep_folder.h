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

/// The turn to extend a sweep, or to end one that may have been extended; waits for it.
system::FileLock wait_for_turn(const std::filesystem::path& folder);
/// Whether the folder's sweep has other cells by now than this plan of it.
bool is_extended(const SweepPlan&);

/// Held by a task as long as it measures a cell. Error(usage) where another one does.
system::FileLock lock_cell(const SweepPlan&, const cells::Cell&);

inline constexpr const char* kFlagsName = "sweep.json";
inline constexpr const char* kPlanName = "plan.txt";
inline constexpr const char* kCellName = "cell.json";  ///< one cell's, beside its run folders

/// plan.txt: the command of every training, one a line, but for cells that cannot be measured here.
void write_plan(const SweepPlan&);

/// The grid of the sweep that the folder holds. Error(usage) where it holds none.
cells::SweepGrid grid_there(const std::filesystem::path& folder);

/// What measured the cells there, which build, and since when: machine.json, a table without cells,
/// written once by what measures first. Nothing where it is not there. Older ones name no date and
/// no commit, which are empty then.
std::optional<cells::CellTable> measurements_there(const SweepPlan&);

/// What tells two kinds of machine or two builds apart, in words; empty where nothing does. Memory
/// may differ by what the system keeps for itself. Cores are not compared: a sweep counts those it
/// was given, a run those that are there.
std::string kind_difference(const cells::CellMachine& there, const cells::CellMachine& here);

/// Says in machine.json that cells are measured here, and gives the plan's table the date and the
/// commit that stand there. Error(usage) where others were measured on another kind of machine, or
/// with another build.
void settle_machine(SweepPlan&);

/// Empty where there is no such file.
std::string text_of(const std::filesystem::path&);

/// Leaves a file alone that holds the text already; whether it did not.
bool write_if_changed(const std::filesystem::path&, const std::string& text);

}  // namespace cputrain::sweep
