#pragma once

#include "cli/command.h"

namespace cputrain::cli {

/// Refuses what makes no sense together, whatever the machine: Error(usage). First what the command
/// itself checks, then what is the same in all.
void check_options(Command&, const Flags&, const CommandLineChoices&);

}  // namespace cputrain::cli
