#include "scaling/sweep/sweep_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "runfiles/description.h"
#include "scaling/cells/run_figures.h"
#include "scaling/sweep/sweep_work.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "training/run/run_folder.h"

namespace cputrain::sweep {
namespace {

constexpr const char* kLockName = "lock";
constexpr const char* kMachineName = "machine.json";

std::string value_text(const nlohmann::json& flags, const std::string& name) {
  if (!flags.contains(name)) return "not given";
  return printable(flags.at(name).dump());
}

/// What two sweeps differ in: "--batch 16,32 there, 64 here"; empty where they are the same.
std::string difference(const nlohmann::json& there, const nlohmann::json& here,
                       std::set<std::string> left_out) {
  std::vector<std::string> parts;
  std::set<std::string> names;
  for (const auto& [name, value] : there.items()) names.insert(name);
  for (const auto& [name, value] : here.items()) names.insert(name);
  left_out.insert("out");  // the folder may be named in other words, or have been moved
  std::erase_if(names, [&](const std::string& name) { return left_out.contains(name); });
  for (const std::string& name : names) {
    const std::string old = value_text(there, name), now = value_text(here, name);
    if (old != now)
      parts.push_back(fmt::format("{}: {} there, {} here", printable(name), old, now));
  }
  return join(parts, "; ");
}

/// What the folder's own sweep is; nothing where it holds none.
std::optional<nlohmann::json> flags_there(const std::filesystem::path& folder) {
  const std::string text = text_of(folder / kFlagsName);
  if (text.empty()) return std::nullopt;
  try {
    return parse_strict_json(text);
  } catch (const std::exception& error) {
    fail(ExitCode::data, "{}: {} (it says which sweep the folder holds); name another --out",
         (folder / kFlagsName).string(), error.what());
  }
}

void throw_away(const std::filesystem::path& folder) {
  std::error_code error;
  for (const char* part :
       {"cells", cells::kCellsName, kPlanName, kMachineName, kKeptName, "report.md", "report.csv",
        "report.json", "report.tex", "report.html", "seconds.svg", kFlagsName}) {
    std::filesystem::remove_all(folder / part, error);
    if (error) {
      fail(ExitCode::output,
           "cannot remove {}: {} (it is of the earlier sweep); remove it, or name another --out",
           (folder / part).string(), error.message());
    }
  }
}

void check_folder(const SweepPlan& plan, const nlohmann::json& there) {
  std::set<std::string> of_grid;
  for (const auto& flags : {there, nlohmann::json(plan.flags)}) {
    for (const auto& [name, value] : flags.items()) {
      if (is_of_grid(name)) of_grid.insert(name);
    }
  }
  const std::string otherwise = difference(there, plan.flags, of_grid);
  if (plan.kept) {
    if (otherwise.empty()) return;
    fail(ExitCode::usage,
         "--extend adds cells to the sweep in {}, and these flags would change how all of its "
         "cells are measured: {}; leave them as they are there, or name another folder",
         plan.folder.string(), otherwise);
  }
  const std::string differs = difference(there, plan.flags, {});
  if (differs.empty()) return;
  fail(ExitCode::usage,
       "--out {} holds another sweep ({}); name another folder{}, or --overwrite to throw that one "
       "away",
       plan.folder.string(), differs,
       otherwise.empty() ? ", --extend to add what is new here to it" : "");
}

/// Before anything is written into it.
void refuse_run(const std::filesystem::path& folder) {
  if (system::is_present(folder / kFlagsName) || !training::holds_run(folder)) return;
  fail(ExitCode::usage,
       "--out {} holds the run of a training (files of the sweep would lie among its own); name "
       "another folder",
       folder.string());
}

/// A folder with something else in it is not ours to write into.
void check_foreign(const SweepPlan& plan) {
  for (const char* part : {"cells", cells::kCellsName, kPlanName}) {
    if (!system::is_present(plan.folder / part)) continue;
    fail(ExitCode::usage,
         "--out {} holds {}, which is not of a sweep (it would be lost); name another folder",
         plan.folder.string(), part);
  }
}

std::string told_apart(const char* what, const std::string& there, const std::string& here) {
  return fmt::format("{}: {} there, {} here", what, printable(there), printable(here));
}

/// What tells two kinds of machine or two builds apart, in words; empty where nothing does. Memory
/// may differ by what the system keeps for itself. Cores are not compared: a sweep counts those it
/// was given, a run those that are there.
std::string kind_difference(const cells::CellMachine& there, const cells::CellMachine& here) {
  constexpr double kSameMemory = 0.05;
  std::vector<std::string> parts;
  const placement::CpuId theirs = there.cpu_id.kind(), own = here.cpu_id.kind();
  if (there.cpu != here.cpu) {
    parts.push_back(told_apart("processor", there.cpu, here.cpu));
  } else if (theirs != own) {
    parts.push_back(told_apart("processor", text_of(theirs, true), text_of(own, true)));
  }
  if (std::abs(there.memory_bytes - here.memory_bytes) > kSameMemory * here.memory_bytes) {
    parts.push_back(
        told_apart("memory", bytes_text(there.memory_bytes), bytes_text(here.memory_bytes)));
  }
  if (there.build != here.build) parts.push_back(told_apart("build", there.build, here.build));
  return join(parts, "; ");
}

/// What makes figures of two machines differ; empty where nothing does.
std::string difference(const cells::CellMachine& there, const cells::CellMachine& here) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, int a, int b) {
    if (a != b) parts.push_back(told_apart(what, std::to_string(a), std::to_string(b)));
  };
  compare("cores", there.cores, here.cores);
  compare("hardware threads", there.hardware_threads, here.hardware_threads);
  if (std::string kind = kind_difference(there, here); !kind.empty()) parts.push_back(kind);
  return join(parts, "; ");
}

/// What measured the cells there, which build, and since when: machine.json, a table without cells,
/// written once by what measures first. Nothing where it is not there. Older ones name no date and
/// no commit, which are empty then.
std::optional<cells::CellTable> measurements_there(const SweepPlan& plan) {
  const auto file = plan.folder / kMachineName;
  if (!system::is_present(file)) return std::nullopt;
  return cells::read_cells(file);
}

void refuse_other_machine(const SweepPlan& plan, const cells::CellMachine& there) {
  const std::string differs = difference(there, plan.table.machine);
  if (differs.empty()) return;
  fail(ExitCode::usage,
       "--out {}: its cells were measured on another kind of machine ({}; figures of both would "
       "stand in one table); name another folder",
       plan.folder.string(), differs);
}

/// Tasks end before an extension could tell them what is new.
void refuse_beside_tasks(const SweepPlan& plan) {
  if (!system::FileLock::take(plan.folder / kLockName, system::FileLock::Kind::shared)) return;
  fail(ExitCode::usage,
       "--extend: tasks are at work in {} (they would not measure what is new); add --plan-only, "
       "and start the tasks that it names",
       plan.folder.string());
}

// What was measured elsewhere: by tasks, or by hand from plan.txt. Nothing of it is taken from the
// machine that collects.

constexpr std::uintmax_t kMostRecorded = 16 << 20;

/// What its task said of a cell; nothing where there was none, or where the file is damaged.
std::optional<cells::Cell> told_by_task(const SweepPlan& plan, const cells::Cell& cell) {
  const auto file = plan.folder_of(cell) / kCellName;
  try {
    cells::Cell told = cells::cell_from_json(
        parse_strict_json(system::read_bounded(file, kMostRecorded)), file.string());
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
    return cells::machine_of_run(runfiles::read_environment(run),
                                 (run / runfiles::kEnvironmentName).string());
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

/// The cell with the figures of its run folders; command and reason are those of its task
/// (cell.json), else the command is that of plan.txt. Runs of another kind of machine than the
/// table's are left out, with their reason.
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

}  // namespace

std::optional<system::FileLock> open_sweep_folder(const SweepPlan& plan, bool overwrite,
                                                  system::FileLock::Kind kind) {
  refuse_run(plan.folder);
  system::make_folder(plan.folder);
  auto lock = system::FileLock::take(plan.folder / kLockName,
                                     overwrite ? system::FileLock::Kind::exclusive : kind);
  if (!lock && !plan.kept) {
    fail(ExitCode::usage,
         "--out {}: another sweep is at work in it (they would write the same files); wait for it, "
         "or name another folder",
         plan.folder.string());
  }
  if (!lock) refuse_beside_tasks(plan);
  auto there = flags_there(plan.folder);
  if (there && overwrite) {
    throw_away(plan.folder);
    there.reset();
  }
  if (there) {
    check_folder(plan, *there);
  } else {
    check_foreign(plan);
  }
  if (plan.kept && kind == system::FileLock::Kind::exclusive) {
    if (const auto measured = measurements_there(plan)) {
      refuse_other_machine(plan, measured->machine);
    }
  }
  if (plan.kept) {
    system::write_own_file(plan.folder / kKeptName, json_text(to_json(*plan.kept), 1) + "\n");
  }
  if (plan.kept || !there) {
    system::write_own_file(plan.folder / kFlagsName, json_text(plan.flags, 1) + "\n");
  }
  return lock;
}

bool is_extended(const SweepPlan& plan) {
  const auto there = flags_there(plan.folder);
  return there && !difference(*there, plan.flags, {}).empty();
}

cells::SweepGrid grid_there(const std::filesystem::path& folder) {
  const auto there = flags_there(folder);
  if (!there) {
    fail(ExitCode::usage,
         "--extend: {} holds no sweep to add cells to; leave --extend out to begin one",
         folder.string());
  }
  return grid_from(*there, (folder / kFlagsName).string());
}

system::FileLock lock_cell(const SweepPlan& plan, const cells::Cell& cell) {
  const auto folder = plan.folder_of(cell);
  system::make_folder(folder);
  auto lock = system::FileLock::take(folder / kLockName, system::FileLock::Kind::exclusive);
  if (!lock) {
    fail(ExitCode::usage,
         "--task: another task is at work in {} (each would remove the trainings of the other); "
         "wait for it, or name another cell's number",
         folder.string());
  }
  return std::move(*lock);
}

void settle_machine(SweepPlan& plan) {
  // Several tasks may start at once: one of them writes it, and all read what it wrote.
  system::create_file(plan.folder / kMachineName, json_text(cells::to_json(plan.table), 1) + "\n");
  const cells::CellTable there = measurements_there(plan).value_or(cells::CellTable{});
  plan.table.date = there.date;
  plan.table.commit = there.commit;
  refuse_other_machine(plan, there.machine);
}

bool collect(const SweepPlan& plan) {
  const auto there = measurements_there(plan);
  cells::CellTable table = plan.table;
  table.machine = there ? there->machine : machine_of_most(plan);
  table.machine.name = plan.table.machine.name;
  table.date = there ? there->date : "";
  table.commit = there ? there->commit : "";
  for (const cells::Cell& cell : plan.cells) {
    table.cells.push_back(collected_cell(plan, cell, table.machine));
  }
  return write_table(plan, table);
}

}  // namespace cputrain::sweep
