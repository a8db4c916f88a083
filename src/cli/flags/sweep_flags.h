#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/config.h"
#include "cli/flags/flags.h"

namespace cputrain::cli {

/// The axes of `sweep`'s table and how its cells are measured.
void add_grid_flags(Flags&, Config&, const CommandLineChoices&);
void add_sweep_output_flags(Flags&, Config&);

/// A flag of a training (job/spec/training_rows.h), with its own help or with another one. For
/// `sweep` those of cells/axes.h take a list, of which the trainings that are planned with have the
/// first value.
void add_row(Flags&, Config&, std::string_view name, const std::string& help = "");
/// Those of one part.
void add_part(Flags&, Config&, std::string_view part);

/// Whether a flag is the sweep's own; the others are handed on to its trainings as they are.
bool is_sweeps_own(const std::string& flag);

/// What the sweep itself needs to know.
sweep::SweepRequest sweep_request(const Config&);

/// Error(usage) for combinations that make no sense, and for a missing --reference.
void check_sweep(const Config&);

/// Tells the sweep what each backend can compute in. Error(usage) for a precision or a backend of
/// which no cell could be measured; single cells that cannot are n/a.
void settle_precisions(Config&, const CommandLineChoices&);

}  // namespace cputrain::cli
