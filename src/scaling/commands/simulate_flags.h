#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "scaling/cells/plan.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "scaling/simulation/platform.h"
#include "scaling/simulation/simulated_costs.h"

namespace cputrain::commands {

struct SimulateOptions : cli::Options {
  simulation::SimulationRequest simulation;
  std::optional<int> repeat;
};

void add_simulate_flags(cli::Flags&, SimulateOptions&);

/// The platform with what the flags change. Before costs are measured `here` is the machine's cores
/// alone. Error(usage) for flags that were typed and would change nothing.
simulation::Platform choose_platform(const SimulateOptions&, const training::Services&,
                                     const simulation::CostTable* costs);

/// Error(usage) where the grid is too large or empty.
cells::SweepGrid planned_grid(const simulation::SimulationRequest&, const simulation::Platform&);

/// What of a training on GPUs is asked for. Error(usage) where its images are to stay on GPUs that
/// have no room for them.
simulation::GpuRun gpu_run(const SimulateOptions&, const training::TrainingSpec&,
                           const simulation::Platform&, std::size_t images);

/// Without flags of the environment that change nothing here, so commands leave them out.
SimulateOptions without_idle(SimulateOptions);

}  // namespace cputrain::commands
