#include "scaling/sweep/sweep_collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/strict_json.h"
#include "core/text.h"
#include "scaling/cells/run_environment.h"
#include "scaling/sweep/sweep_folder.h"
#include "system/bounded_file.h"

namespace cputrain::sweep {
namespace {

constexpr std::uintmax_t kMostBytes = 16 << 20;

/// What its task said of a cell; nothing where there was none, or where the file is damaged.
std::optional<cells::Cell> told_by_task(const SweepPlan& plan, const cells::Cell& cell) {
  const auto file = plan.folder_of(cell) / kCellName;
  try {
    cells::Cell told = cells::cell_from_json(
        parse_strict_json(system::read_bounded(file, kMostBytes)), file.string());
    if (cells::cell_name(told) == cells::cell_name(cell)) return told;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

/// The line of plan.txt that trains into this run folder; empty where there is none.
std::string planned_command(const SweepPlan& plan, const cells::Cell& cell, int repeat) {
  const std::string end = "/" + plan.run_of(cell, repeat).string();
  for (const std::string& line : split(text_of(plan.folder / kPlanName), '\n')) {
    if (line.ends_with(end) || line.ends_with(end + "'")) return line;
  }
  return "";
}

/// A run's own record of its machine, where it is whole.
std::optional<cells::CellMachine> recorded_machine(const std::filesystem::path& run) {
  try {
    const auto file = run / "environment.json";
    return cells::machine_of_run(parse_strict_json(system::read_bounded(file, kMostBytes)),
                                 file.string());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Trainings by hand may run anywhere; what another kind of machine measured is not of this table.
void leave_out_foreign(const SweepPlan& plan, const cells::Cell& cell,
                       const cells::CellMachine& of_table, CellState& state) {
  if (of_table.cpu.empty()) return;  // not known
  std::erase_if(state.runs, [&](const auto& run) {
    const auto folder = plan.folder / plan.run_of(cell, run.first);
    const auto machine = recorded_machine(folder);
    const std::string differs = machine ? kind_difference(*machine, of_table) : "";
    if (differs.empty()) return false;
    if (state.foreign.empty()) {
      state.foreign = fmt::format(
          "repeat {} was measured on another kind of machine than this table ({}) and does not "
          "count; remove {} to measure it anew",
          run.first, differs, folder.string());
    }
    return true;
  });
}

/// That of most runs, as some may be of another machine; empty where it is not known.
cells::CellMachine machine_of_most(const SweepPlan& plan) {
  std::vector<std::pair<cells::CellMachine, int>> kinds;
  for (const cells::Cell& cell : plan.cells) {
    for (const auto& run : state_of(plan, cell).runs) {
      const auto found = recorded_machine(plan.folder / plan.run_of(cell, run.first));
      if (!found) continue;
      const auto same = std::ranges::find_if(
          kinds, [&](const auto& kind) { return kind_difference(*found, kind.first).empty(); });
      if (same == kinds.end()) {
        kinds.emplace_back(*found, 1);
      } else {
        ++same->second;
      }
    }
  }
  const auto most =
      std::ranges::max_element(kinds, {}, &std::pair<cells::CellMachine, int>::second);
  return most == kinds.end() ? cells::CellMachine{} : most->first;
}

}  // namespace

cells::Cell collected_cell(const SweepPlan& plan, const cells::Cell& cell,
                           const cells::CellMachine& of_table) {
  CellState state = state_of(plan, cell);
  leave_out_foreign(plan, cell, of_table, state);
  const auto told = told_by_task(plan, cell);
  const std::string cannot = told && told->runs.empty() ? told->reason : "";
  std::string command = told ? told->command : "";
  for (const auto& [repeat, figures] : state.runs) {
    if (command.empty()) command = planned_command(plan, cell, repeat);
  }
  return cell_with_figures(plan, cell, state, cannot, command);
}

cells::CellTable collected_table(const SweepPlan& plan) {
  const auto there = measurements_there(plan);
  cells::CellTable table = plan.table;
  table.machine = there ? there->machine : machine_of_most(plan);
  table.date = there ? there->date : "";
  table.commit = there ? there->commit : "";
  return table;
}

}  // namespace cputrain::sweep
