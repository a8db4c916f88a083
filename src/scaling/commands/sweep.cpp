#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/commands/commands.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/report_files.h"
#include "scaling/sweep/sweep_folder.h"
#include "scaling/sweep/sweep_plan.h"
#include "scaling/sweep/sweep_work.h"
#include "system/file_lock.h"
#include "system/print.h"
#include "training/asked_end.h"

namespace cputrain::commands {
namespace {

std::size_t added(const sweep::SweepPlan& plan) {
  return plan.cells.size() - std::min(plan.added_from, plan.cells.size());
}

void say_plan(const sweep::SweepPlan& plan) {
  for (const std::string& line : plan.left_out) system::tell("left out: " + line);
  system::tell("{} of {}, {} each, {} images per epoch; in {}", counted(plan.cells.size(), "cell"),
               plan.table.model, counted(plan.repeats, "training"), with_commas(plan.epoch.images),
               plan.folder.string());
  if (plan.kept) system::tell("New: " + counted(added(plan), "cell"));
}

/// The turn to extend a sweep, or to end one that may have been extended; waits for it.
system::FileLock wait_for_turn(const std::filesystem::path& folder) {
  constexpr const char* kTurnName = "lock-extend";
  for (;;) {
    auto turn = system::FileLock::take(folder / kTurnName, system::FileLock::Kind::exclusive);
    if (turn) return std::move(*turn);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// plan.txt: the command of every training, one a line, but for cells that cannot be measured here.
void write_plan(const sweep::SweepPlan& plan) {
  std::string text;
  std::set<std::string> why;
  std::size_t missing = 0;
  for (const cells::Cell& cell : plan.cells) {
    if (const std::string reason = plan.why_not(cell); !reason.empty()) {
      ++missing;
      why.insert(reason);
      continue;
    }
    for (int repeat = 1; repeat <= plan.repeats; ++repeat) {
      text += command_line(plan.words_of_run(cell, repeat)) + "\n";
    }
  }
  sweep::write_if_changed(plan.folder / sweep::kPlanName, text);
  if (missing == 0) return;
  system::tell("{} has no lines of {} of {} cells, which cannot be measured here: {}",
               sweep::kPlanName, missing, plan.cells.size(), fmt::join(why, "; "));
}

/// The table on standard output, and the report in the folder, unless it is there already.
void draw(const sweep::SweepPlan& plan, const SweepOptions& options, bool news) {
  const auto page = plan.folder / "report.html";
  if (news || !options.reference.empty() || !system::is_present(page)) {
    report::ReportRequest request{
        .folders = {plan.folder}, .out = {}, .reference = {}, .prices = {}};
    if (!options.reference.empty()) request.reference = options.reference;
    report::Document document = report::write_report(request).document;
    document.sections.resize(std::min<std::size_t>(document.sections.size(), 1));
    system::print_lines(report::markdown(document));
  }
  system::tell("Table: {}, report: {}; `{} report {}` prints more of it",
               (plan.folder / cells::kCellsName).string(), page.string(), plan.program,
               quoted(plan.folder.string()));
}

ExitCode stopped(const sweep::SweepPlan& plan, const training::Services& services) {
  system::tell(
      "cputrain: stopped; finished cells are kept, the same command goes on with the others ({})",
      plan.folder.string());
  return static_cast<ExitCode>(services.signals->stop_code());
}

ExitCode run_task(const SweepOptions& options, const training::Services& services,
                  const sweep::SweepPlan& plan) {
  const auto task = static_cast<std::size_t>(*options.sweep.task);
  if (task > plan.cells.size()) {
    fail(ExitCode::usage, "--task {}: must be a cell's number from 1 to {}", task,
         plan.cells.size());
  }
  // Before anything of the cell is read: the task that had it may just have finished a training.
  const system::FileLock lock = sweep::lock_cell(plan, plan.cells[task - 1]);
  sweep::SweepWork work(services, plan);
  work.works_alone = false;
  if (!work.measure(task - 1, task, options.sweep.retry)) return stopped(plan, services);
  return ExitCode::ok;
}

/// A table is of machines; times of emulated ones do not belong in it.
void refuse_emulated(const std::vector<std::string>& backends, const training::Services& services) {
  for (const std::string& backend : backends) {
    const auto list = services.devices ? services.devices(backend) : std::nullopt;
    if (!list || std::ranges::none_of(list->devices, &compute::Device::emulated)) continue;
    fail(ExitCode::usage,
         "--backend {}: sweep measures times, and this program's device is emulated (they would "
         "mean nothing in a table); use a program with a real one, or leave the column out",
         backend);
  }
}

void say_tasks(const sweep::SweepPlan& plan) {
  const std::string file = (plan.folder / sweep::kPlanName).string();
  if (added(plan) == 0) {
    system::tell("Plan: {}, a line a training; no task is new", file);
    return;
  }
  system::tell("Plan: {}, a line a training; `--task {}` to `--task {}` measure a cell each", file,
               plan.added_from + 1, plan.cells.size());
}

/// Measures what is missing, and what others add until it ends. The folder is given back with the
/// turn to extend it, so that no cells are added to a sweep that looks no more.
ExitCode measure_all(const SweepOptions& options, const training::Services& services,
                     sweep::SweepPlan plan, std::optional<system::FileLock> lock) {
  const auto armed = services.signals->arm();
  for (bool first = true;; first = false) {
    sweep::settle_machine(plan);
    sweep::SweepWork work(services, plan);
    bool news = work.write_table();
    if (!work.measure(0, plan.cells.size(), first && options.sweep.retry)) {
      return stopped(plan, services);
    }
    news |= work.write_table() || work.measured_something;
    draw(plan, options, news);
    const system::FileLock turn = wait_for_turn(plan.folder);
    if (!sweep::is_extended(plan)) {
      lock.reset();
      return ExitCode::ok;
    }
    sweep::SweepRequest request = options.sweep;
    request.extend = true;
    plan = sweep::plan_sweep(options, request, services);
    say_plan(plan);
  }
}

/// The flags of the sweep that --extend adds to.
std::string earlier_flags(const std::map<std::string, std::string>& given) {
  if (!given.contains("extend") || !given.contains("out")) return "";
  const auto file = std::filesystem::path(given.at("out")) / sweep::kFlagsName;
  return system::is_present(file) ? file.string() : "";
}

void check_sweep(SweepOptions& options, const cli::CommandLineChoices& choices) {
  settle_sweep(options, choices);
  check_partial(options);
  training::check_watchers(options);
}

ExitCode run_sweep(const SweepOptions& options, const training::Services& services) {
  refuse_emulated(options.sweep.grid.backends, services);
  // A mistake in it should show before hours of measuring.
  if (!options.reference.empty()) static_cast<void>(report::read_reference(options.reference));
  const bool extends = options.sweep.extend;
  std::optional<system::FileLock> turn;
  if (extends && std::filesystem::is_directory(options.out)) turn = wait_for_turn(options.out);
  sweep::SweepPlan plan = sweep::plan_sweep(options, options.sweep, services);
  const bool shares = options.sweep.task || (extends && options.sweep.plan_only);
  std::optional<system::FileLock> lock = sweep::open_sweep_folder(
      plan, options.overwrite,
      shares ? system::FileLock::Kind::shared : system::FileLock::Kind::exclusive);
  turn.reset();
  say_plan(plan);
  if (!options.sweep.task && !options.sweep.collect) write_plan(plan);
  if (!lock) {
    system::tell("The sweep at work in {} measures them behind its own", plan.folder.string());
    return ExitCode::ok;
  }
  if (options.sweep.plan_only) {
    say_tasks(plan);
    return ExitCode::ok;
  }
  if (options.sweep.collect) {
    draw(plan, options, sweep::collect(plan));
    return ExitCode::ok;
  }
  if (options.sweep.task) {
    sweep::settle_machine(plan);
    const auto armed = services.signals->arm();
    return run_task(options, services, plan);
  }
  return measure_all(options, services, std::move(plan), std::move(lock));
}

}  // namespace

std::unique_ptr<cli::Command> make_sweep() {
  return cli::make_command<SweepOptions>(
      {.help =
           {.name = "sweep",
            .summary = "the table \"seconds per epoch\" by CPUs, batch and backend",
            .about =
                "Measures a grid of trainings and makes the table \"seconds per epoch\" of it. It "
                "goes on where it was interrupted.",
            .examples = {{"cputrain sweep --np 1,2 --batch 128,256 --out sweeps/mine",
                          "Measures four cells: one and two CPUs, two batches."},
                         {"cputrain sweep --backend cpu,cuda --np 1,2,4,8 --gpus 1,2 --batch 256",
                          "CPUs and GPUs in one table."},
                         {"cputrain report sweeps/mine",
                          "Prints the table again, with speed-up and efficiency."}},
            .common = {"np", "gpus", "batch", "backend", "model", "data", "repeat", "steps",
                       "full-epochs", "launcher", "out"},
            .others = "hpo,grid,scan,scaling,search"},
       // Its trainings compute, and the sweep has no backend of its own.
       .task = {.trains = false, .computes = false, .one_job = false},
       .add_flags = add_sweep_flags,
       .check = check_sweep,
       .why_idle =
           [](const SweepOptions& options, const std::string& flag) {
             return why_idle_in_training(options, flag, options.sweep.grid.backends);
           },
       .run = run_sweep,
       .results_are_files = [](auto&&...) { return true; },
       .earlier_flags = earlier_flags});
}

}  // namespace cputrain::commands
