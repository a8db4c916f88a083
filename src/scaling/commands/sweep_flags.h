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

/// The axes of `sweep`'s table, how its cells are measured, and flags of its trainings. Those of
/// them that are axes (scaling/cells/axes.h) take a list.
void add_sweep_flags(cli::Flags&, SweepOptions&, const cli::CommandLineChoices&);

/// Fills in what the sweep itself needs to know, such as what each backend can compute in.
/// Error(usage) for a precision or a backend of which no cell could be measured (single cells that
/// cannot are n/a), for combinations that make no sense, and for a missing --reference.
void settle_sweep(SweepOptions&, const cli::CommandLineChoices&);

}  // namespace cputrain::commands
