#pragma once

#include "cli/command_line.h"

namespace cputrain::cli {

/// Refuses what makes no sense together, whatever the machine: Error(usage). The one word of a
/// `data` command becomes its data set.
void check_combinations(Config&, const CommandLineChoices&);

}  // namespace cputrain::cli
