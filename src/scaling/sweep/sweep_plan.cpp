#include "scaling/sweep/sweep_plan.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "core/version.h"
#include "model/summary.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/run_figures.h"
#include "scaling/sweep/sweep_folder.h"
#include "system/child_process.h"
#include "system/clock.h"
#include "training/asked_end.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

namespace cputrain::sweep {
namespace {

/// What a backend of devices lacks for the column of most GPUs; empty where nothing.
std::string lacking(const cells::Launching& launching, const std::string& backend, int most) {
  const auto here = std::ranges::find(launching.backends, backend, &cells::BackendHere::name);
  if (here == launching.backends.end()) {
    return fmt::format(
        "this build has no backend {}; build one that has it, or leave it and --gpus out", backend);
  }
  if (!launching.words.empty() || launching.cluster || !here->devices) return "";
  if (*here->devices == 0) {
    return fmt::format(
        "there is no device for backend {} here: {}; leave it and --gpus out, or measure where it "
        "is (--launcher, --plan-only)",
        backend, here->why_none);
  }
  if (launching.oversubscribe || static_cast<std::size_t>(most) <= *here->devices) return "";
  return fmt::format(
      "this machine has {} for backend {}, not {}; name so many at most, --oversubscribe to let "
      "ranks share them, or what starts ranks on several machines (--launcher)",
      counted(*here->devices, "GPU"), backend, most);
}

training::TrainingFlags flags_with(training::TrainingFlags flags, const cells::FlagTexts& axes) {
  const training::TrainingFlags usual;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    training::training_row(flag.name).copy(flags, usual);
  }
  for (const auto& [flag, value] : axes) set_value(flags, flag, value);
  return flags;
}

std::string os_text() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "";
}

bool on_a_cluster() {
  const char* hosts = std::getenv("SLURM_JOB_NUM_NODES");
  return hosts && std::string_view(hosts) != "1";
}

std::vector<cells::BackendHere> backends_here(const SweepRequest& request,
                                              const training::Services& services) {
  std::vector<cells::BackendHere> all;
  for (const std::string& name : services.backends) {
    cells::BackendHere& here = all.emplace_back(cells::BackendHere{name});
    const auto precisions = request.precisions.find(name);
    if (precisions != request.precisions.end()) here.precisions = precisions->second;
    const auto list = services.devices ? services.devices(name) : std::nullopt;
    if (!list) continue;
    here.devices = list->devices.size();
    here.why_none = list->why_none;
  }
  return all;
}

cells::Launching launching_of(const SweepRequest& request, const training::Services& services,
                              const placement::Machine& machine) {
  const int allowed = static_cast<int>(machine.allowed_cpus.size());
  return {.words = request.launcher,
          .host = {machine.allowed_cores, allowed, machine.numa_nodes, machine.cpu_quota},
          .team_limit = machine.team_limit,
          .team_limited_by = machine.team_limited_by,
          .mpi = services.mpi && system::program_exists("mpirun"),
          .open_mpi = !cells::software_of(kVersion, services.libraries).mpi.empty(),
          .as_root = ::geteuid() == 0,
          .oversubscribe = request.oversubscribe,
          .cluster = on_a_cluster(),
          .backends = backends_here(request, services)};
}

/// "./cputrain" where that is this program, else where it lies. A wheel's launcher stands before
/// the program, for each rank, too: it chooses MPI's library.
std::string program_path() {
  if (const char* launcher = std::getenv("CPUTRAIN_STARTED_BY")) return launcher;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "./cputrain";
  const bool near = std::filesystem::equivalent("cputrain", self, error) && !error;
  return near ? "./cputrain" : self.string();
}

/// Without the working folder before it. sweep.json names the folder from the root, so that it
/// means the same anywhere; lines of a plan are those of the person who typed a short name.
std::filesystem::path seen_from_here(const std::filesystem::path& path) {
  std::error_code error;
  const auto near = path.lexically_relative(std::filesystem::current_path(error));
  const bool inside = path.is_absolute() && !error && !near.empty() && *near.begin() != "..";
  return inside ? near : path;
}

cells::SweepGrid grid_of(const SweepRequest& request, const std::optional<cells::SweepGrid>& there,
                         const training::TrainingSpec& spec, const placement::Machine& machine) {
  cells::SweepGrid grid = there ? united(*there, request.grid) : request.grid;
  const bool all_gpus =
      !grid.gpus.empty() && std::ranges::all_of(grid.backends, training::is_device);
  if (grid.cpus.empty() && !all_gpus) {
    const auto here = static_cast<int>(machine.allowed_cpus.size());
    grid.cpus = cells::doubled(1, std::max(here, 1));
  }
  if (grid.batches.empty() && grid.batches_per_rank.empty()) grid.batches = {spec.batch};
  return grid;
}

/// As `--config` reads it.
nlohmann::ordered_json flags_of(const training::TrainingFlags& flags, const cells::SweepGrid& grid,
                                int repeats, const std::string& folder) {
  nlohmann::ordered_json json;
  cells::for_each_list(grid, [&](const char* name, const auto& list) {
    if (!list.empty()) json[name] = list_text(list);
  });
  json["repeat"] = repeats;
  const std::set<std::string> own{"repeat", "out",     "overwrite", "retry",    "task",
                                  "extend", "collect", "plan-only", "reference"};
  for (const auto& [name, value] : flags.given) {
    if (own.contains(name) || is_of_grid(name)) continue;
    if (flags.switches.contains(name))
      json[name] = true;
    else
      json[name] = value;
  }
  if (!flags.weights.empty()) json["weights"] = flags.weights;  // a file, where a run was named
  json["out"] = folder;
  return json;
}

cells::CellTable table_of(const training::Services& services, const training::TrainingSpec& spec,
                          const model::Graph& graph, const placement::Machine& machine) {
  cells::CellTable table;
  table.model = spec.model->name;
  table.image_size = spec.image.height;
  table.parameters = static_cast<double>(graph.parameter_count());
  table.maps_per_image = model::kept_numbers(graph);
  table.macs_per_image = model::summary_json(graph).at("macs_per_image").get<double>();
  table.data = spec.flags.data_or_synthetic();
  table.seed = spec.seed;
  table.date = system::today();
  table.commit = services.program_build;
  cells::CellMachine software = cells::software_of(kVersion, services.libraries);
  table.machine = {.cpu = machine.cpu_model,
                   .cpu_id = machine.cpu_id,
                   .host = machine.host,
                   .os = os_text(),
                   .mpi = std::move(software.mpi),
                   .build = std::move(software.build),
                   .cores = machine.allowed_cores,
                   .hardware_threads = static_cast<int>(machine.allowed_cpus.size()),
                   .memory_bytes = machine.memory_gb * 1e9};
  return table;
}

std::string command_text(const std::string& program, const nlohmann::ordered_json& flags) {
  std::vector<std::string> words{program, "sweep"};
  for (const auto& [name, value] : flags.items()) {
    words.push_back("--" + name);
    if (!value.is_boolean())
      words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return command_line(words);
}

/// Training images of each batch, by the cell with most steps.
std::map<std::size_t, std::size_t> images_of(const std::vector<cells::Cell>& cells,
                                             const SweepPlan& plan) {
  std::map<std::size_t, std::size_t> images;
  for (const cells::Cell& cell : cells) {
    std::size_t& most = images[cell.batch];
    most = std::max(most, plan.steps_of(cell).images);
  }
  return images;
}

/// The cells in the order of their tasks, and the images of their batches. What an earlier
/// extension kept stays, and a new one keeps what is there now.
void plan_cells(SweepPlan& plan, const cells::SweepGrid& grid,
                const std::optional<cells::SweepGrid>& there, bool fresh) {
  Kept kept = fresh ? Kept{} : kept_in(plan.folder);
  if (there) {
    std::vector<cells::Cell> before = cells::cells_of(*there);
    put_in_order(before, kept);
    kept.order.clear();
    for (const cells::Cell& cell : before) kept.order.push_back(cells::cell_name(cell));
    kept.images.merge(images_of(before, plan));
    plan.kept = kept;
    plan.added_from = before.size();
  }
  plan.cells = cells::cells_of(grid);
  plan.left_out = cells::left_out_of(grid);
  put_in_order(plan.cells, kept);
  plan.images = std::move(kept.images);
  plan.images.merge(images_of(plan.cells, plan));
}

/// What holds for all cells of the table. The usual precision is said where GPUs are: there it is
/// TF32, and tables have it in their names.
cells::FlagTexts options_of(const SweepRequest& request, const cells::SweepGrid& grid) {
  cells::FlagTexts options = request.options;
  for (const auto& [flag, values] : grid.listed) {
    if (values.size() == 1) options[flag] = values.front();
  }
  const bool devices = std::ranges::any_of(grid.backends, training::is_device);
  if (devices && !grid.listed.contains("precision")) {
    options["precision"] = word_of(training::TrainingFlags{}.precision);
  }
  return options;
}

/// Refuses a sweep of which no combination can be trained, and remembers those that cannot.
void find_impossible(SweepPlan& plan, const training::TrainingFlags& flags) {
  std::set<cells::FlagTexts> combinations;
  for (const cells::Cell& cell : plan.cells) combinations.insert(cell.axes);
  for (const cells::FlagTexts& axes : combinations) {
    const std::string why = why_never(flags, axes);
    if (!why.empty()) plan.never.emplace(axes, why);
  }
  if (plan.never.size() == combinations.size()) {
    fail(ExitCode::usage, plan.never.begin()->second);
  }
}

}  // namespace

void check_gpus(const cells::SweepGrid& grid, const std::optional<cells::Launching>& launching) {
  if (grid.gpus.empty()) return;
  const std::string flag = "--gpus " + list_text(grid.gpus);
  if (std::ranges::none_of(grid.backends, training::is_device)) {
    fail(ExitCode::usage,
         "{} with --backend {}: no column is of GPUs; add a backend of GPUs, such as --backend "
         "cpu,cuda",
         flag, list_text(grid.backends));
  }
  if (!launching) return;
  for (const std::string& backend : grid.backends) {
    if (!training::is_device(backend)) continue;
    const std::string why = lacking(*launching, backend, std::ranges::max(grid.gpus));
    if (!why.empty()) fail(ExitCode::usage, flag + ": " + why);
  }
}

training::TrainingSpec choose_any(const training::TrainingFlags& flags,
                                  const cells::SweepGrid& grid) {
  const std::vector<cells::FlagTexts> all = cells::combinations_of(grid);
  const auto possible = std::ranges::find_if(
      all, [&](const cells::FlagTexts& axes) { return why_never(flags, axes).empty(); });
  return training::choose_training(
      flags_with(flags, possible == all.end() ? all.front() : *possible));
}

std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes) {
  try {
    static_cast<void>(training::choose_training(flags_with(flags, axes)));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return error.what();
  }
  return "";
}

std::filesystem::path SweepPlan::run_of(const cells::Cell& cell, int repeat) const {
  return std::filesystem::path("cells") / cells::cell_name(cell) / fmt::format("repeat-{}", repeat);
}

std::vector<std::string> SweepPlan::words_of_run(const cells::Cell& cell, int repeat) const {
  std::vector<std::string> words = cells::launch_words(launching, cell);
  words.insert(words.end(), {program, "train"});
  words.insert(words.end(), passed_on.begin(), passed_on.end());
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  add("--batch", std::to_string(cell.batch));
  add("--backend", cell.backend);
  add("--threads", std::to_string(cell.threads));
  for (const auto& [flag, value] : cells::without_usual(cell.axes)) {
    words.insert(words.end(), {"--" + flag, value});
  }
  if (!full_epochs) {
    const cells::StepPlan plan = steps_of(cell);
    add("--steps", std::to_string(plan.warm_up + plan.measured));
    add("--settled-steps", std::to_string(plan.measured));
    add("--limit-train", std::to_string(images.at(cell.batch)));
    add("--limit-val", "0");
  } else {
    words.push_back("--no-save-best");  // weights of a sweep are of no use
  }
  add("--checkpoint-every", "0");  // a sweep that is stopped makes its trainings anew
  add("--decode", "first");        // images that are decoded beside steps take some of their time
  add("--log-every", "1");
  add("--verbose", "2");
  words.insert(words.end(), {"--measure-limits", "--overwrite"});
  add("--out", (folder / run_of(cell, repeat)).string());
  return words;
}

std::string SweepPlan::why_not(const cells::Cell& cell) const {
  const auto impossible = never.find(cell.axes);
  return impossible == never.end() ? cells::why_not(launching, cell) : impossible->second;
}

SweepPlan plan_sweep(const training::TrainingFlags& flags, const SweepRequest& request,
                     const training::Services& services) {
  if (services.launcher.present()) {
    fail(ExitCode::usage,
         "a sweep under mpirun or srun (each of its trainings starts its own ranks); start it "
         "without, and name what starts ranks with --launcher");
  }
  check_size(request.grid);
  const training::TrainingSpec spec = choose_any(flags, request.grid);
  const placement::Machine machine = services.machine();
  const data::DataSource source = services.data.open(flags.data_request(spec.seed));
  if (request.full_epochs) training::check_watchers(spec, source);
  const model::Graph graph = training::build_graph(spec, training::classes_of(spec, source));

  SweepPlan plan;
  plan.folder = flags.out.empty() ? std::filesystem::path("sweeps") / spec.model->name
                                  : seen_from_here(flags.out);
  std::optional<cells::SweepGrid> there;
  if (request.extend) there = grid_there(plan.folder);
  const cells::SweepGrid grid = grid_of(request, there, spec, machine);
  plan.repeats = request.repeats;
  plan.full_epochs = request.full_epochs;
  if (flags.steps) plan.steps = static_cast<int>(*flags.steps);
  plan.epoch = {source.train.size(), spec.plan.drop_last};
  check_size(grid);
  plan.launching = launching_of(request, services, machine);
  // A task of an array is on a node that may serve other cells than its own: its cell says why.
  const bool measures = !request.plan_only && !request.collect && !request.task;
  check_gpus(grid, measures ? std::optional(plan.launching) : std::nullopt);
  plan_cells(plan, grid, there, flags.overwrite);
  if (plan.cells.empty()) {
    fail(ExitCode::usage, "--np {} --threads {}: {}", list_text(grid.cpus), list_text(grid.threads),
         plan.left_out.front());
  }
  check_limits(plan.cells, grid);
  find_impossible(plan, flags);
  plan.flops_per_image = graph.training_flops();
  plan.program = program_path();
  plan.passed_on = request.passed_on;
  plan.table = table_of(services, spec, graph, machine);
  plan.table.machine.name = request.machine_name;
  plan.table.options = options_of(request, grid);
  plan.table.images_per_epoch = plan.epoch.images;
  if (plan.full_epochs) plan.table.validation_images = source.validation.size();
  nlohmann::ordered_json given = flags_of(flags, grid, plan.repeats, plan.folder.string());
  plan.table.command = command_text(plan.program, given);
  if (given.contains("model")) given["model"] = spec.model->spec();
  plan.flags = training::from_any_folder(std::move(given));
  return plan;
}

}  // namespace cputrain::sweep
