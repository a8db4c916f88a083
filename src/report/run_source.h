#pragma once

#include <filesystem>
#include <vector>

#include "report/scaling_table.h"

namespace cputrain::report {

/// Whether a training left its figures there (config.json and metrics.jsonl).
bool is_run_folder(const std::filesystem::path&);

/// Folders of single trainings as tables of measured cells: those that were trained alike on one
/// kind of machine make a table, and the same cell in several of them its repeats. A training that
/// did not come to its end is a cell without a time. The files may be hostile: Error(data).
std::vector<CellSource> read_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace cputrain::report
