#pragma once

#include "loop/faults.h"

namespace cputrain::composition {

/// The program: reads the command line, runs one command, and returns the exit code of the process,
/// which it alone ends. Programs compile it, not the library, since each has a build_of_program()
/// (core/version.h). `fault_point` is for a program of the tests.
int run_program(int argc, char** argv, const loop::FaultPoint& fault_point = {});

}  // namespace cputrain::composition
