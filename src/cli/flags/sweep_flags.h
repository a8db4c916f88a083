#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/config.h"
#include "cli/flags/flags.h"

namespace cputrain::cli {

/// The axes of `sweep`'s table and how its cells are measured.
void add_grid_flags(Flags&, Config&, const CommandLineChoices&);
void add_sweep_output_flags(Flags&, Config&);

/// Whether a flag is the sweep's own; the others are handed on to its trainings as they are.
bool is_sweeps_own(const std::string& flag);

/// What the sweep itself needs to know.
sweep::SweepRequest sweep_request(const Config&);

/// Error(usage) for combinations that make no sense, and for a missing --reference.
void check_sweep(const Config&);

}  // namespace cputrain::cli
