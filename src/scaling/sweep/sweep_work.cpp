#include "scaling/sweep/sweep_work.h"

#include <fmt/format.h>

#include "core/json_text.h"
#include "core/shell_words.h"
#include "scaling/sweep/sweep_folder.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"
#include "system/tell.h"

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
    system::tell(fmt::format("{}: n/a: {}", place(i), why));
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
  system::tell(fmt::format("{}{:.4g} s per epoch ({:.4g} images/s, {} steps of {:.4g} s){}{}", head,
                           seconds, plan_.epoch.images_in(plan_.cells[i].batch) / seconds,
                           run.steps, run.step_seconds, disturbance_text(run), ending));
}

}  // namespace cputrain::sweep
