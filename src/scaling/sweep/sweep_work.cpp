#include "scaling/sweep/sweep_work.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "system/bounded_file.h"
#include "system/child_process.h"
#include "system/clock.h"
#include "system/file_lock.h"
#include "system/files.h"
#include "system/lost_time.h"
#include "system/print.h"
#include "system/temporary.h"
#include "training/request/flag_grammars.h"
#include "training/run/run_folder.h"

namespace cputrain::sweep {
namespace {

/// Beside a run folder, with another ending: repeat-1.log.
std::filesystem::path beside(const SweepPlan& plan, const cells::Cell& cell, int repeat,
                             const char* ending) {
  return plan.folder / (plan.run_of(cell, repeat).string() + ending);
}

constexpr const char* kFailure = ".failure.json";

std::optional<cells::RunFigures> figures_of(const SweepPlan& plan, const cells::Cell& cell,
                                            int repeat) {
  const auto run = plan.folder / plan.run_of(cell, repeat);
  return plan.full_epochs ? cells::measured_figures(run)
                          : cells::scaled_figures(run, cell, plan.epoch, plan.steps_of(cell));
}

/// Empty where there is none.
std::string failure_of(const SweepPlan& plan, const cells::Cell& cell, int repeat) {
  constexpr std::uintmax_t kLongestReason = 1 << 14;  // shorter than what tables hold
  try {
    const auto file = beside(plan, cell, repeat, kFailure);
    return parse_strict_json(system::read_bounded(file, kLongestReason)).at("reason");
  } catch (const std::exception&) {
    return "";
  }
}

extern "C" {
extern char** environ;  // NOLINT: the name is the system's
}

/// Ours, without flags for the sweep, which trainings would read as theirs, and without what says
/// that the sweep itself is one of several processes: each training is a job of its own.
std::vector<std::string> environment_of_run(const std::filesystem::path& lock) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const bool ours = text.starts_with("CPUTRAIN_") || text.starts_with("SLURM_STEP_NUM_TASKS=") ||
                      text.starts_with("WORLD_SIZE=");
    if (!ours) variables.emplace_back(text);
  }
  variables.push_back("CPUTRAIN_END_WITH=" + std::filesystem::absolute(lock).string());
  variables.push_back("OMPI_ALLOW_RUN_AS_ROOT=1");  // we run as root only if the user does
  variables.push_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  return variables;
}

/// Asks kindly, then less so. mpirun passes SIGUSR1 on to its ranks.
void end(system::ChildProcess& child) {
  constexpr double kPatience = 5;  // mpirun takes two seconds to answer SIGTERM
  for (const int signal : {SIGUSR1, SIGTERM, SIGKILL}) {
    child.send(signal);
    const system::Stopwatch waited;
    while (!child.exit_code() && waited.seconds() < kPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (child.exit_code()) return;
  }
}

/// The program's own words about its end, else the last ones there are.
std::string last_words(const std::filesystem::path& log) {
  std::ifstream stream(log, std::ios::binary);
  std::deque<std::string> last;
  std::string own;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("cputrain: ") && own.empty()) own = line.substr(10);
    if (line.find_first_not_of("- \t\r") == std::string::npos) continue;
    last.push_back(line);
    if (last.size() > 3) last.pop_front();
  }
  std::string text = own;
  if (own.empty()) text = join(std::vector<std::string>(last.begin(), last.end()), " / ");
  return printable(text);
}

/// How trainings end after a signal.
bool by_signal(int code) {
  return code == static_cast<int>(ExitCode::stopped) ||
         code == static_cast<int>(ExitCode::interrupted);
}

/// A signal to the whole process group, or to all processes of a job, may end the ranks before ours
/// has come. Where none comes, it was to the ranks alone, and not to the sweep.
bool stop_comes(const system::SignalWatch& signals) {
  constexpr double kPatience = 2;
  const system::Stopwatch waited;
  while (!signals.stop_requested() && waited.seconds() < kPatience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return signals.stop_requested();
}

std::string reason_of(int code, const std::filesystem::path& log) {
  const char* why = code == 128 + SIGKILL ? " (killed: out of memory, or by another process)"
                    : by_signal(code)     ? " (a signal ended it, and the sweep got none)"
                                          : "";
  return fmt::format("exit code {}{}: {}", code, why, last_words(log));
}

/// For a training that ended well.
std::string why_no_figures(const SweepPlan& plan, const cells::Cell& cell, int repeat) {
  if (cells::devices_of_run(plan.folder / plan.run_of(cell, repeat)).emulated) {
    return "it was computed on an emulated device, whose times mean nothing in a table";
  }
  if (!plan.full_epochs) {
    const auto run = plan.folder / plan.run_of(cell, repeat);
    if (const auto steps = cells::unsettled_steps(run, cell, plan.epoch)) {
      return fmt::format("no step without trials of algorithms in {} steps; raise --steps", *steps);
    }
  }
  return "it ended without figures: " + last_words(beside(plan, cell, repeat, ".log"));
}

/// Weights after a few steps are of no use, and large.
void drop_weights(const SweepPlan& plan, const cells::Cell& cell, int repeat) {
  if (plan.full_epochs) return;
  for (const char* name : {training::kWeightsName, training::kAveragesName}) {
    std::error_code ignored;
    std::filesystem::remove(plan.folder / plan.run_of(cell, repeat) / name, ignored);
  }
}

constexpr const char* kRunLock = "lock";

/// Nothing where a signal asked for a stop.
std::optional<int> exit_code_of_run(const SweepPlan& plan, const cells::Cell& cell, int repeat,
                                    const system::SignalWatch& signals) {
  // A file that no other sweep locks, not even one that continues this one at once: ranks of a
  // killed sweep would take that for theirs.
  const auto lock_file = plan.folder_of(cell) / (kRunLock + system::temporary_suffix());
  const system::RemovedInTheEnd removed(lock_file);
  const auto lock = system::FileLock::take(lock_file, system::FileLock::Kind::exclusive);
  system::ChildProcess child(plan.words_of_run(cell, repeat), environment_of_run(lock_file),
                             beside(plan, cell, repeat, ".log"));
  while (!child.exit_code()) {
    if (signals.stop_requested()) {
      end(child);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return child.exit_code();
}

/// Forgets why a cell failed, so that it is measured again.
void forget_failure(const SweepPlan& plan, const cells::Cell& cell) {
  std::error_code ignored;
  for (int repeat = 1; repeat <= plan.repeats; ++repeat) {
    std::filesystem::remove(beside(plan, cell, repeat, kFailure), ignored);
  }
}

/// Trains the next repeat of a cell, from its beginning, and adds what it says to `state`. False
/// where a signal asked for a stop: then its ranks have ended, and nothing of it counts.
bool run_next(const SweepPlan& plan, const cells::Cell& cell, system::SignalWatch& signals,
              CellState& state) {
  const int repeat = state.next();
  system::make_folder(plan.folder_of(cell));
  system::remove_abandoned(plan.folder_of(cell) / kRunLock);  // of sweeps that were killed
  system::remove_quietly(plan.folder / plan.run_of(cell, repeat));
  const std::optional<int> code = exit_code_of_run(plan, cell, repeat, signals);
  if (!code || (*code != 0 && signals.stop_requested())) return false;
  if (by_signal(*code) && stop_comes(signals)) return false;
  drop_weights(plan, cell, repeat);
  const auto figures = *code == 0 ? figures_of(plan, cell, repeat) : std::nullopt;
  if (figures) {
    state.runs.emplace(repeat, *figures);
    return true;
  }
  state.failed = repeat;
  state.failure = *code != 0 ? reason_of(*code, beside(plan, cell, repeat, ".log"))
                             : why_no_figures(plan, cell, repeat);
  system::write_own_file(beside(plan, cell, repeat, kFailure),
                         json_text(nlohmann::ordered_json{{"reason", state.failure}}) + "\n");
  return true;
}

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

CellState state_of(const SweepPlan& plan, const cells::Cell& cell) {
  CellState state;
  for (int repeat = 1; repeat <= plan.repeats; ++repeat) {
    if (const auto figures = figures_of(plan, cell, repeat)) {
      state.runs.emplace(repeat, *figures);
    } else if (state.failure.empty()) {
      state.failed = repeat;
      state.failure = failure_of(plan, cell, repeat);
    }
  }
  return state;
}

cells::Cell cell_with_figures(const SweepPlan& plan, const cells::Cell& coordinates,
                              const CellState& state, const std::string& cannot,
                              const std::string& command) {
  cells::Cell cell = coordinates;
  cell.command = command;
  if (state.runs.empty()) {
    for (const std::string& reason : {state.failure, state.foreign, cannot}) {
      if (cell.reason.empty()) cell.reason = reason;
    }
    if (cell.reason.empty()) cell.reason = "not measured yet";
    return cell;
  }
  std::vector<cells::RunFigures> runs;
  for (const auto& [repeat, figures] : state.runs) {
    runs.push_back(figures);
    cell.runs.push_back(plan.run_of(cell, repeat).string());
  }
  cell.status = plan.full_epochs ? cells::CellStatus::measured : cells::CellStatus::scaled;
  cells::combine(cell, runs, plan.epoch.images_in(cell.batch), plan.flops_per_image);
  cell.reason = state.foreign;
  if (cell.reason.empty() && training::is_device(cell.backend) && cell.gpus < cell.ranks) {
    cell.reason = fmt::format("its {} ranks shared {}", cell.ranks, counted(cell.gpus, "GPU"));
  }
  const bool enough = runs.size() >= static_cast<std::size_t>(plan.repeats);
  if (!state.failure.empty() && !enough) {
    cell.reason = fmt::format("repeat {} failed: {}", state.failed, state.failure);
  }
  cell.limits = cells::explain(cell, plan.table.parameters);
  return cell;
}

std::string text_of(const std::filesystem::path& file) {
  return system::is_file(file) ? system::text_in(file) : "";
}

bool write_if_changed(const std::filesystem::path& file, const std::string& text) {
  if (text_of(file) == text) return false;
  system::write_own_file(file, text);
  return true;
}

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
  const std::string cannot = tried ? "" : plan_.why_not(plan_.cells[i]);
  const int repeat = runs.empty() ? 1 : runs.rbegin()->first;
  return cell_with_figures(plan_, cell, states_[i], cannot,
                           cannot.empty() ? command_line(plan_.words_of_run(cell, repeat)) : "");
}

std::size_t SweepWork::runs_left(std::size_t i) const {
  return plan_.why_not(plan_.cells[i]).empty() ? states_[i].left(plan_) : 0;
}

double SweepWork::cost_of_run(std::size_t i) const {
  const cells::Cell& cell = plan_.cells[i];
  if (plan_.full_epochs) return plan_.epoch.images_in(cell.batch) / cell.cpus;
  const cells::StepPlan plan = plan_.steps_of(cell);
  const double images = static_cast<double>(plan.warm_up + plan.measured) *
                        static_cast<double>(plan_.epoch.images_of_step(cell.batch));
  return images / cell.cpus;
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
  } else if (const std::string why = plan_.why_not(plan_.cells[i]); !why.empty()) {
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

}  // namespace cputrain::sweep
