#pragma once

#include "cli/config.h"
#include "cli/flags/flags.h"

/// Flags of `report`.
namespace cputrain::cli {

void add_report_flags(Flags&, Config&);
/// Error(usage) for folders and flags that do not go together.
void check_report(const Config&);

}  // namespace cputrain::cli
