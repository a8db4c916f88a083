#pragma once

#include <optional>
#include <set>
#include <string>

#include "cli/command.h"
#include "scaling/sweep/sweep_request.h"

namespace cputrain::cli {

struct SweepOptions : Options {
  sweep::SweepRequest sweep;
  std::optional<int> repeat;
  std::string reference;
  std::set<std::string> of_trainings;  ///< names of flags that trainings have, too
};

/// The axes of `sweep`'s table and how its cells are measured.
void add_grid_flags(Flags&, SweepOptions&, const CommandLineChoices&);
void add_sweep_output_flags(Flags&, SweepOptions&);

/// What the sweep itself needs to know.
sweep::SweepRequest sweep_request(const SweepOptions&);

/// Error(usage) for combinations that make no sense, and for a missing --reference.
void check_sweep(const SweepOptions&);

/// Tells the sweep what each backend can compute in. Error(usage) for a precision or a backend of
/// which no cell could be measured; single cells that cannot are n/a.
void settle_precisions(SweepOptions&, const CommandLineChoices&);

}  // namespace cputrain::cli
