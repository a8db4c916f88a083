// cputrain-smpi JOB: one cell of `cputrain simulate`, on every rank that smpirun starts. Simulated
// ranks are contexts of one process, so no exception may leave one of them.

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <simgrid/s4u/Actor.hpp>
#include <string>

#include "backends/sim/core.h"
#include "backends/sim/simulated_cell.h"
#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "core/casts.h"
#include "core/error.h"
#include "system/print.h"

namespace cputrain::sim {
namespace {

simulation::SimulationResult simulated(const simulation::SimulationJob& job) {
  simulation::SimulationResult result;
  try {
    const auto parsed =
        cli::parse_command_line(job.arguments, {},
                                {.backends = {{kSimulated, {Precision::f32, Precision::bf16}}},
                                 .commands = {commands::make_train}});
    return run_simulated_cell(job, std::get<std::unique_ptr<cli::Command>>(parsed)->options());
  } catch (const Error& error) {
    result.failure = error.what();
  } catch (const std::exception& error) {
    result.failure = std::string("internal error: ") + error.what();
  }
  return result;
}

int run(const char* file) {
  system::set_host_calls(simulated_host());  // every rank sets the same
  prctl(PR_SET_PDEATHSIG, SIGKILL);          // smpirun may be killed without a word
  try {
    const simulation::SimulationJob job = simulation::read_job(file);
    const simulation::SimulationResult result = simulated(job);
    const bool failed = !result.failure.empty();
    if (!failed && simgrid::s4u::this_actor::get_name() != "0") return 0;
    simulation::write_result(job.result, result);
    // Ranks that wait for one that failed would wait for ever.
    if (failed) std::_Exit(0);
    return 0;
  } catch (const Error& error) {
    system::tell(std::string("cputrain-smpi: ") + error.what());
    std::_Exit(to_int(error.code()));
  }
}

}  // namespace
}  // namespace cputrain::sim

int main(int argc, char** argv) {
  if (argc == 2) return cputrain::sim::run(argv[1]);
  std::fputs("cputrain-smpi JOB: started by `cputrain simulate`\n", stderr);
  return to_int(cputrain::ExitCode::usage);
}
