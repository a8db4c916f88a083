#pragma once

#include "loop/faults.h"

namespace cputrain::composition {

/// The program: reads the command line, runs one command, and returns what the process ends with.
/// It alone ends the process. A source of programs, not of the library: each has a
/// build_of_program() of its own (core/version.h). `fault_point` is of a program of the tests.
int run_program(int argc, char** argv, const loop::FaultPoint& fault_point = {});

}  // namespace cputrain::composition
