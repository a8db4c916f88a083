#pragma once

#include <vector>

#include "cli/flags/choices.h"
#include "loop/parts.h"

namespace cputrain::composition {

/// The command line of this build.
cli::CommandLineChoices command_line_choices();
/// The same commands with these backends.
cli::CommandLineChoices command_line_choices(std::vector<training::BackendChoice>);

/// The program: reads the command line, runs one command, and returns the exit code of the process,
/// which it alone ends. Programs compile it, not the library, since each has a build_of_program()
/// (core/version.h). `fault_point` is for a program of the tests.
int run_program(int argc, char** argv, const loop::FaultPoint& fault_point = {});

}  // namespace cputrain::composition
