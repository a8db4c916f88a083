#pragma once

#include <vector>

#include "cli/flags/choices.h"

namespace cputrain::composition {

/// The command line of this build.
cli::CommandLineChoices command_line_choices();
/// The same commands with these backends.
cli::CommandLineChoices command_line_choices(std::vector<training::BackendChoice>);

}  // namespace cputrain::composition
