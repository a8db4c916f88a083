#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/cells/plan.h"
#include "scaling/simulation/platform.h"
#include "scaling/simulation/simulated_costs.h"
#include "training/request/choose_training.h"

/// The command `simulate`: its flags, and what it makes of cells of CPUs and of GPUs alike.
namespace cputrain::commands {

struct SimulateOptions : cli::Options {
  simulation::SimulationRequest simulation;
  std::optional<int> repeat;
};

/// Flags that are handed on to the simulated trainings.
extern const std::vector<std::string> kOfTraining;
/// Flags that change nothing on a platform of GPUs.
bool is_idle_on_gpus(const std::string& flag);

/// Error(usage) where the grid is too large or empty.
cells::SweepCells planned_cells(const simulation::SimulationRequest&, const simulation::Platform&);
/// The command that makes this cell alone.
std::string command_of(const SimulateOptions&, const cells::Cell&);
/// What makes another experiment of a table with the same platform and model; `costs` says whose.
cells::FlagTexts options_of(const SimulateOptions&, const std::string& costs);
/// A table for that model and epoch, without cells.
cells::CellTable empty_table(const SimulateOptions&, const training::TrainingSpec&,
                             const model::Graph&, std::size_t images, const std::string& platform);
/// What simulates, and with which costs.
void describe(cells::CellTable&, const cells::CellMachine&, const training::Services&,
              const std::string& costs);

bool holds_a_table(const SimulateOptions&);
/// Error(usage) where --out holds a table that may not be replaced.
void check_out_folder(const SimulateOptions&);
/// cells.json, costs.json and platform.json into --out, if there is one.
void write_folder(const SimulateOptions&, const cells::CellTable&,
                  const nlohmann::ordered_json& costs, const simulation::Platform&);
/// On the terminal and as --json asks for.
void say_result(const SimulateOptions&, const cells::CellTable&);

/// The table of a platform of GPUs, by formulas. `table` has its cells, without figures.
ExitCode simulate_gpus(const SimulateOptions&, const training::Services&,
                       const training::TrainingSpec&, const model::Graph&,
                       const simulation::Platform&, cells::CellTable table);

}  // namespace cputrain::commands
