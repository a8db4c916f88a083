#pragma once

#include "cli/sweep_plan.h"
#include "core/file_lock.h"

namespace cputrain {

/// Opens the folder of a sweep: makes it, or finds the same sweep in it. Error(usage) where it
/// holds another one and `overwrite` is not given, or where another sweep is at work in it. Several
/// tasks may share it.
FileLock open_sweep_folder(const SweepPlan&, bool overwrite, FileLock::Kind);

/// plan.txt: the command of every training, one a line.
void write_plan(const SweepPlan&, const std::vector<std::string>& backends);

/// What measured the cells there: machine.json, a table without cells; else this machine.
CellMachine machine_there(const SweepPlan&);

/// Says in machine.json that cells are measured here. Error(usage) where others were measured on
/// other processors.
void settle_machine(const SweepPlan&);

/// Leaves a file alone that holds the text already; whether it did not.
bool write_if_changed(const std::filesystem::path&, const std::string& text);

}  // namespace cputrain
