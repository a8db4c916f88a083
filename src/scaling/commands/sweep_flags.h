#pragma once

#include <optional>
#include <set>
#include <string>

#include "cli/command.h"
#include "scaling/sweep/sweep_request.h"

namespace cputrain::commands {

struct SweepOptions : cli::Options {
  sweep::SweepRequest sweep;
  std::optional<int> repeat;
  std::string reference;
  std::set<std::string> of_trainings;  ///< names of flags that trainings have, too
};

/// The axes of `sweep`'s table and how its cells are measured.
void add_grid_flags(cli::Flags&, SweepOptions&, const cli::CommandLineChoices&);
/// From here on flags of trainings that are axes (scaling/cells/axes.h) take a list, of which the
/// trainings that are planned with have the first value.
void take_lists(cli::Flags&, SweepOptions&);
void add_sweep_output_flags(cli::Flags&, SweepOptions&);

/// What the sweep itself needs to know.
sweep::SweepRequest sweep_request(const SweepOptions&);

/// Error(usage) for combinations that make no sense, and for a missing --reference.
void check_sweep(const SweepOptions&);

/// Tells the sweep what each backend can compute in. Error(usage) for a precision or a backend of
/// which no cell could be measured; single cells that cannot are n/a.
void settle_precisions(SweepOptions&, const cli::CommandLineChoices&);

}  // namespace cputrain::commands
