#pragma once

#include "cli/command_line.h"
#include "cli/config.h"
#include "cli/flags/flags.h"

namespace cputrain::cli {

/// Adds the flags that `config.command` has; each writes into its member of `config`.
void add_command_flags(Flags&, Config&, const CommandLineChoices&);

}  // namespace cputrain::cli
