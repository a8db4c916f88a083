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

/// Leaves a file alone that holds the text already.
void write_if_changed(const std::filesystem::path&, const std::string& text);

}  // namespace cputrain
