#pragma once

#include <functional>
#include <memory>

#include "cli/command.h"
#include "scaling/simulation/simulator.h"

/// Commands about many trainings, each made at the end of its file.
namespace cputrain::commands {

using FindSimulator = std::function<simulation::Simulator()>;

std::unique_ptr<cli::Command> make_bench();
std::unique_ptr<cli::Command> make_bench_step();
std::unique_ptr<cli::Command> make_bench_allreduce();
std::unique_ptr<cli::Command> make_bench_input();
std::unique_ptr<cli::Command> make_bench_kernels();
std::unique_ptr<cli::Command> make_tune();
std::unique_ptr<cli::Command> make_sweep();
std::unique_ptr<cli::Command> make_simulate(FindSimulator);
std::unique_ptr<cli::Command> make_report();

}  // namespace cputrain::commands
