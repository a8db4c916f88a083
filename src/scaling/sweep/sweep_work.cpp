#include "scaling/sweep/sweep_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/text.h"
#include "scaling/cells/run_environment.h"
#include "scaling/sweep/sweep_folder.h"
#include "system/bounded_file.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"
#include "system/print.h"

namespace cputrain::sweep {
namespace {

std::string disturbance_text(const cells::RunFigures& run) {
  std::string text;
  if (run.stolen.value_or(0) >= system::kStolenWorthSaying) {
    text += fmt::format("; the host took {:.0f} % of its CPU time", 100 * *run.stolen);
  }
  if (run.cpu_wait.value_or(0) >= system::kWaitWorthSaying) {
    text +=
        fmt::format("; its threads waited {:.0f} % of their time for a CPU", 100 * *run.cpu_wait);
  }
  return text;
}

// What was measured elsewhere: by tasks, or by hand from plan.txt.

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

bool write_table(const SweepPlan& plan, const cells::CellTable& table) {
  return write_if_changed(plan.folder / cells::kCellsName,
                          json_text(cells::to_json(table), 1) + "\n");
}

SweepWork::SweepWork(const training::Services& services, const SweepPlan& plan)
    : services_(services), plan_(plan) {
  for (const cells::Cell& cell : plan.cells) states_.push_back(state_of(plan, cell));
}

bool SweepWork::measure(std::size_t first, std::size_t last, bool retry) {
  for (std::size_t i = first; i < last && retry; ++i) {
    forget_failure(plan_, plan_.cells[i]);
    states_[i] = state_of(plan_, plan_.cells[i]);
  }
  for (std::size_t i = first; i < last; ++i) left_.expect(cost_left(i));
  for (int round = 1; round <= plan_.repeats; ++round) {
    for (std::size_t i = first; i < last; ++i) {
      if (!measure_repeat(i, round)) return false;
    }
  }
  return true;
}

bool SweepWork::write_table() const {
  cells::CellTable table = plan_.table;
  for (std::size_t i = 0; i < states_.size(); ++i) table.cells.push_back(cell(i));
  return sweep::write_table(plan_, table);
}

void SweepWork::write_cell(std::size_t i) const {
  const auto folder = plan_.folder_of(plan_.cells[i]);
  system::make_folder(folder);
  write_if_changed(folder / kCellName, json_text(cells::to_json(cell(i)), 1) + "\n");
}

cells::Cell SweepWork::cell(std::size_t i) const {
  const cells::Cell& cell = plan_.cells[i];
  const Runs& runs = states_[i].runs;
  const bool tried = !runs.empty() || !states_[i].failure.empty();
  const std::string cannot = tried ? "" : why_not_measured(i);
  const int repeat = runs.empty() ? 1 : runs.rbegin()->first;
  return cell_with_figures(plan_, cell, states_[i], cannot,
                           cannot.empty() ? command_line(plan_.words_of_run(cell, repeat)) : "");
}

std::string SweepWork::why_not_measured(std::size_t i) const {
  return plan_.why_not(plan_.cells[i]);
}

std::size_t SweepWork::runs_left(std::size_t i) const {
  return why_not_measured(i).empty() ? states_[i].left(plan_) : 0;
}

double SweepWork::cost_of_run(std::size_t i) const {
  return plan_.images_of_run(plan_.cells[i]) / plan_.cells[i].cpus;
}

double SweepWork::cost_left(std::size_t i) const {
  return static_cast<double>(runs_left(i)) * cost_of_run(i);
}

bool SweepWork::measure_repeat(std::size_t i, int round) {
  if (runs_left(i) > 0 && states_[i].runs.size() < static_cast<std::size_t>(round)) {
    const system::Stopwatch watch;
    const double left_before = cost_left(i);
    const int repeat = states_[i].next();
    if (!run_next(plan_, plan_.cells[i], *services_.signals, states_[i])) return false;
    measured_something = true;
    left_.spent(watch.seconds(), cost_of_run(i), left_before - cost_left(i));
    log_run(i, repeat);
  } else if (round > 1) {
    return true;
  } else if (const std::string why = why_not_measured(i); !why.empty()) {
    system::tell("{}: n/a: {}", place(i), why);
  }
  write_cell(i);
  if (works_alone) write_table();
  return true;
}

std::string SweepWork::place(std::size_t i) const {
  return fmt::format("[{}/{}] {}", i + 1, plan_.cells.size(), cells::cell_text(plan_.cells[i]));
}

void SweepWork::log_run(std::size_t i, int repeat) const {
  const CellState& state = states_[i];
  const std::string left = left_.text(), ending = left.empty() ? "" : " - " + left + " left",
                    head = fmt::format("{}, repeat {}: ", place(i), repeat);
  if (!state.failure.empty()) return system::tell(head + "n/a: " + state.failure + ending);
  const cells::RunFigures& run = state.runs.at(repeat);
  const double seconds = *run.seconds_per_epoch;
  system::tell("{}{:.4g} s per epoch ({:.4g} images/s, {} steps of {:.4g} s){}{}", head, seconds,
               plan_.epoch.images_in(plan_.cells[i].batch) / seconds, run.steps, run.step_seconds,
               disturbance_text(run), ending);
}

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
