#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/flags/flag_groups.h"
#include "cli/flags/idle_flags.h"
#include "core/json_text.h"
#include "core/shell_words.h"
#include "core/text.h"
#include "scaling/commands/commands.h"
#include "scaling/commands/sweep_flags.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/report_files.h"
#include "scaling/sweep/sweep_collect.h"
#include "scaling/sweep/sweep_folder.h"
#include "scaling/sweep/sweep_plan.h"
#include "scaling/sweep/sweep_run.h"
#include "scaling/sweep/time_left.h"
#include "system/clock.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"
#include "system/print.h"
#include "system/tell.h"
#include "training/validation_watchers.h"

namespace cputrain::commands {
namespace {

/// Whether it is another than before.
bool write_table(const sweep::SweepPlan& plan, const cells::CellTable& table) {
  return sweep::write_if_changed(plan.folder / cells::kCellsName,
                                 json_text(cells::to_json(table), 1) + "\n");
}

/// A sweep at work: its cells, what is known of them, and the file that says so.
class Sweep {
 public:
  Sweep(const training::Services& services, const sweep::SweepPlan& plan)
      : services_(services), plan_(plan) {
    for (const cells::Cell& cell : plan.cells) states_.push_back(sweep::state_of(plan, cell));
  }

  /// Measures what is missing of some cells: a repeat of each, then the next repeat of each, so
  /// that a slow minute of the machine falls on none of them alone and there is a whole table after
  /// the first round. `retry`: what failed, too. False where a signal asked for a stop.
  bool measure(std::size_t first, std::size_t last, bool retry) {
    for (std::size_t i = first; i < last && retry; ++i) {
      sweep::forget_failure(plan_, plan_.cells[i]);
      states_[i] = sweep::state_of(plan_, plan_.cells[i]);
    }
    for (std::size_t i = first; i < last; ++i) left_.expect(cost_left(i));
    for (int round = 1; round <= plan_.repeats; ++round) {
      for (std::size_t i = first; i < last; ++i) {
        if (!measure_repeat(i, round)) return false;
      }
    }
    return true;
  }

  cells::CellTable table() const {
    cells::CellTable table = plan_.table;
    for (std::size_t i = 0; i < states_.size(); ++i) table.cells.push_back(cell(i));
    return table;
  }

  bool write_table() const { return commands::write_table(plan_, table()); }

  /// A task's own file, which no other task writes.
  void write_cell(std::size_t i) const {
    system::make_folder(plan_.folder_of(plan_.cells[i]));
    sweep::write_if_changed(plan_.folder_of(plan_.cells[i]) / sweep::kCellName,
                            json_text(cells::to_json(cell(i)), 1) + "\n");
  }

  bool works_alone = true;  ///< then the table is written after every cell
  bool measured_something = false;

 private:
  cells::Cell cell(std::size_t i) const {
    const cells::Cell& cell = plan_.cells[i];
    const sweep::Runs& runs = states_[i].runs;
    const bool tried = !runs.empty() || !states_[i].failure.empty();
    const std::string cannot = tried ? "" : why_not_measured(i);
    const int repeat = runs.empty() ? 1 : runs.rbegin()->first;
    return sweep::cell_with_figures(
        plan_, cell, states_[i], cannot,
        cannot.empty() ? command_line(plan_.words_of_run(cell, repeat)) : "");
  }

  std::size_t runs_left(std::size_t i) const {
    return why_not_measured(i).empty() ? states_[i].left(plan_) : 0;
  }

  /// Size of one run, in images by CPU: what takes time grows with it.
  double cost_of_run(std::size_t i) const {
    return plan_.images_of_run(plan_.cells[i]) / plan_.cells[i].cpus;
  }
  double cost_left(std::size_t i) const {
    return static_cast<double>(runs_left(i)) * cost_of_run(i);
  }

  /// In its round, or earlier where repeats were there already.
  bool measure_repeat(std::size_t i, int round) {
    if (runs_left(i) > 0 && states_[i].runs.size() < static_cast<std::size_t>(round)) {
      const system::Stopwatch watch;
      const double left_before = cost_left(i);
      const int repeat = states_[i].next();
      if (!sweep::run_next(plan_, plan_.cells[i], *services_.signals, states_[i])) return false;
      measured_something = true;
      left_.spent(watch.seconds(), cost_of_run(i), left_before - cost_left(i));
      say_run(i, repeat);
    } else if (round > 1) {
      return true;
    } else if (!why_not_measured(i).empty()) {
      say_absent(i);
    }
    write_cell(i);
    if (works_alone) write_table();
    return true;
  }

  std::string why_not_measured(std::size_t i) const { return plan_.why_not(plan_.cells[i]); }

  std::string place(std::size_t i) const {
    return fmt::format("[{}/{}] {}", i + 1, plan_.cells.size(), cells::cell_text(plan_.cells[i]));
  }

  void say_absent(std::size_t i) const {
    system::tell(fmt::format("{}: n/a: {}", place(i), why_not_measured(i)));
  }

  static std::string disturbance_text(const cells::RunFigures& run) {
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

  void say_run(std::size_t i, int repeat) const {
    const sweep::CellState& state = states_[i];
    const std::string left = left_.text();
    const std::string ending = left.empty() ? "" : fmt::format(" - {} left", left);
    if (!state.failure.empty()) {
      system::tell(
          fmt::format("{}, repeat {}: n/a: {}{}", place(i), repeat, state.failure, ending));
      return;
    }
    const cells::RunFigures& run = state.runs.at(repeat);
    const double images = plan_.epoch.images_in(plan_.cells[i].batch);
    system::tell(
        fmt::format("{}, repeat {}: {:.4g} s per epoch ({:.4g} images/s, {} steps of {:.4g} s){}{}",
                    place(i), repeat, *run.seconds_per_epoch, images / *run.seconds_per_epoch,
                    run.steps, run.step_seconds, disturbance_text(run), ending));
  }

  const training::Services& services_;
  const sweep::SweepPlan& plan_;
  std::vector<sweep::CellState> states_;
  sweep::TimeLeft left_;
};

std::size_t added(const sweep::SweepPlan& plan) {
  return plan.cells.size() - std::min(plan.added_from, plan.cells.size());
}

std::string counted_cells(std::size_t n) { return fmt::format("{} cell{}", n, n == 1 ? "" : "s"); }

void say_plan(const sweep::SweepPlan& plan) {
  for (const std::string& line : plan.left_out) system::tell("left out: " + line);
  system::tell(fmt::format("{} of {}, {} training{} each, {} images per epoch; in {}",
                           counted_cells(plan.cells.size()), plan.table.model, plan.repeats,
                           plan.repeats == 1 ? "" : "s", with_commas(plan.epoch.images),
                           plan.folder.string()));
  if (plan.kept) system::tell(fmt::format("New: {}", counted_cells(added(plan))));
}

/// The table on standard output, and the report in the folder, unless it is there already.
void draw(const sweep::SweepPlan& plan, const SweepOptions& options, bool news) {
  const auto page = plan.folder / "report.html";
  std::error_code ignored;
  if (news || !options.reference.empty() || !std::filesystem::exists(page, ignored)) {
    report::ReportRequest request{
        .folders = {plan.folder}, .out = {}, .reference = {}, .prices = {}};
    if (!options.reference.empty()) request.reference = options.reference;
    report::Document document = report::write_report(request).document;
    document.sections.resize(std::min<std::size_t>(document.sections.size(), 1));
    system::print_lines(report::markdown(document));
  }
  system::tell(fmt::format("Table: {}, report: {}; `{} report {}` prints more of it",
                           (plan.folder / cells::kCellsName).string(), page.string(), plan.program,
                           quoted(plan.folder.string())));
}

ExitCode stopped(const sweep::SweepPlan& plan, const training::Services& services) {
  system::tell(
      fmt::format("cputrain: stopped; finished cells are kept, the same command goes on with the "
                  "others ({})",
                  plan.folder.string()));
  return static_cast<ExitCode>(services.signals->stop_code());
}

ExitCode run_task(const SweepOptions& options, const training::Services& services,
                  const sweep::SweepPlan& plan) {
  const auto task = static_cast<std::size_t>(*options.sweep.task);
  if (task > plan.cells.size()) {
    fail(ExitCode::usage,
         fmt::format("--task {}: must be a cell's number from 1 to {}", task, plan.cells.size()));
  }
  // Before anything of the cell is read: who had it may just have finished a training.
  const system::FileLock lock = sweep::lock_cell(plan, plan.cells[task - 1]);
  Sweep sweep(services, plan);
  sweep.works_alone = false;
  if (!sweep.measure(task - 1, task, options.sweep.retry)) return stopped(plan, services);
  return ExitCode::ok;
}

ExitCode collect(sweep::SweepPlan& plan, const SweepOptions& options) {
  cells::CellTable table = sweep::collected_table(plan);
  for (const cells::Cell& cell : plan.cells)
    table.cells.push_back(sweep::collected_cell(plan, cell, table.machine));
  draw(plan, options, write_table(plan, table));
  return ExitCode::ok;
}

/// A table is of machines; times of emulated ones do not belong in it.
void refuse_emulated(const std::vector<std::string>& backends, const training::Services& services) {
  for (const std::string& backend : backends) {
    const auto list = services.devices ? services.devices(backend) : std::nullopt;
    if (!list || std::ranges::none_of(list->devices, &compute::Device::emulated)) continue;
    fail(ExitCode::usage,
         fmt::format("--backend {}: sweep measures times, and this program's device is emulated "
                     "(they would mean nothing in a table); use a program with a real one, or "
                     "leave the column out",
                     backend));
  }
}

void say_tasks(const sweep::SweepPlan& plan) {
  const std::string file = (plan.folder / sweep::kPlanName).string();
  if (added(plan) == 0) {
    system::tell(fmt::format("Plan: {}, a line a training; no task is new", file));
    return;
  }
  system::tell(
      fmt::format("Plan: {}, a line a training; `--task {}` to `--task {}` measure a cell each",
                  file, plan.added_from + 1, plan.cells.size()));
}

/// Measures what is missing, and what others add until it ends. The folder is given back with the
/// turn to extend it, so that no cells are added to a sweep that looks no more.
ExitCode measure_all(const SweepOptions& options, const training::Services& services,
                     sweep::SweepPlan plan, std::optional<system::FileLock> lock) {
  const auto armed = services.signals->arm();
  for (bool first = true;; first = false) {
    sweep::settle_machine(plan);
    Sweep sweep(services, plan);
    bool news = sweep.write_table();
    if (!sweep.measure(0, plan.cells.size(), first && options.sweep.retry)) {
      return stopped(plan, services);
    }
    news |= sweep.write_table() || sweep.measured_something;
    draw(plan, options, news);
    const system::FileLock turn = sweep::wait_for_turn(plan.folder);
    if (!sweep::is_extended(plan)) {
      lock.reset();
      return ExitCode::ok;
    }
    sweep::SweepRequest request = sweep_request(options);
    request.extend = true;
    plan = sweep::plan_sweep(options, request, services);
    say_plan(plan);
  }
}

class SweepCommand final : public cli::CommandWith<SweepOptions> {
 public:
  /// Its trainings compute, and the sweep has no backend of its own.
  SweepCommand() : CommandWith({.trains = false, .computes = false, .one_job = false}) {}

  cli::CommandEntry help() const override {
    return {.name = "sweep",
            .summary = "the table \"seconds per epoch\" by CPUs, batch and backend",
            .about =
                "Measures a grid of trainings and makes the table \"seconds per epoch\" of it. "
                "It goes on where it was interrupted.",
            .examples = {{"cputrain sweep --np 1,2 --batch 128,256 --out sweeps/mine",
                          "Measures four cells: one and two CPUs, two batches."},
                         {"cputrain sweep --backend cpu,cuda --np 1,2,4,8 --gpus 1,2 --batch 256",
                          "CPUs and GPUs in one table."},
                         {"cputrain report sweeps/mine",
                          "Prints the table again, with speed-up and efficiency."}},
            .common = {"np", "gpus", "batch", "backend", "model", "data", "repeat", "steps",
                       "full-epochs", "launcher", "out"},
            .others = {"tune,hpo,grid,scan,scaling,search"}};
  }

  void add_flags(cli::Flags& f, const cli::CommandLineChoices& choices) override {
    SweepOptions& c = options_;
    add_grid_flags(f, c, choices);
    const std::set<std::string> grid = f.names();
    take_lists(f, c);
    add_training_model_flags(f, c);
    add_data_flags(f, c, true);
    f.group("Training");
    add_part(f, c, "micro-batch");
    add_recipe_flags(f, c);
    add_stall_flags(f, c);
    f.group("Machine");  // whose grid has the rest of them
    add_precision_flag(f, c, choices);
    add_row(f, c, "bind");
    add_row(f, c, "io-threads");
    add_backend_options(f, c, choices);
    add_part(f, c, "input");
    add_part(f, c, "exchange");
    std::ranges::set_difference(f.names(), grid,
                                std::inserter(c.of_trainings, c.of_trainings.end()));
    add_sweep_output_flags(f, c);
  }

  /// The flags of the sweep that --extend adds to.
  std::string earlier_flags(const std::map<std::string, std::string>& given) const override {
    if (!given.contains("extend") || !given.contains("out")) return "";
    const auto file = std::filesystem::path(given.at("out")) / sweep::kFlagsName;
    std::error_code ignored;
    return std::filesystem::exists(file, ignored) ? file.string() : "";
  }
  void check(const cli::CommandLineChoices& choices) override {
    settle_precisions(options_, choices);
    check_sweep(options_);
    training::check_watchers(options_);
  }
  bool results_are_files() const override { return true; }
  std::string why_idle(const std::string& flag) const override {
    return why_idle_in_training(options_, flag, options_.sweep.grid.backends);
  }

  ExitCode run(const training::Services&) override;
};

ExitCode SweepCommand::run(const training::Services& services) {
  refuse_emulated(options_.sweep.grid.backends, services);
  // A mistake in it should show before hours of measuring.
  if (!options_.reference.empty()) static_cast<void>(report::read_reference(options_.reference));
  const bool extends = options_.sweep.extend;
  std::optional<system::FileLock> turn;
  if (extends && std::filesystem::is_directory(options_.out))
    turn = sweep::wait_for_turn(options_.out);
  sweep::SweepPlan plan = sweep::plan_sweep(options_, sweep_request(options_), services);
  const bool shares = options_.sweep.task || (extends && options_.sweep.plan_only);
  std::optional<system::FileLock> lock = sweep::open_sweep_folder(
      plan, options_.overwrite,
      shares ? system::FileLock::Kind::shared : system::FileLock::Kind::exclusive);
  turn.reset();
  say_plan(plan);
  if (!options_.sweep.task && !options_.sweep.collect) sweep::write_plan(plan);
  if (!lock) {
    system::tell(
        fmt::format("The sweep at work in {} measures them behind its own", plan.folder.string()));
    return ExitCode::ok;
  }
  if (options_.sweep.plan_only) {
    say_tasks(plan);
    return ExitCode::ok;
  }
  if (options_.sweep.collect) return collect(plan, options_);
  if (options_.sweep.task) {
    sweep::settle_machine(plan);
    const auto armed = services.signals->arm();
    return run_task(options_, services, plan);
  }
  return measure_all(options_, services, std::move(plan), std::move(lock));
}

}  // namespace

std::unique_ptr<cli::Command> make_sweep() { return std::make_unique<SweepCommand>(); }

}  // namespace cputrain::commands
