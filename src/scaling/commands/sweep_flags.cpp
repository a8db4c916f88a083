#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <variant>

#include "cli/flags/flag_groups.h"
#include "cli/flags/foreign_words.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "scaling/commands/commands.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

namespace cputrain::commands {
namespace {

/// Names that the table's columns may have: backends, those that this build lacks included, and
/// devices for which there is no backend yet.
std::vector<std::string> column_names(const cli::CommandLineChoices& choices) {
  std::set<std::string> names(training::kDeviceBackends.begin(), training::kDeviceBackends.end());
  for (const training::BackendChoice& backend : choices.backends) names.insert(backend.name);
  return {names.begin(), names.end()};
}

/// What this build lacks becomes a column of n/a.
void set_backends(SweepOptions& c, const std::vector<std::string>& known, const std::string& text) {
  c.sweep.grid.backends = split(text, ',');
  std::set<std::string> seen;
  for (const std::string& name : c.sweep.grid.backends) {
    if (std::ranges::find(known, name) != known.end() && seen.insert(name).second) continue;
    fail(ExitCode::usage,
         "--backend {}: must be different ones of {}, with one comma between each two{}", text,
         join(known, ", "), cli::hint_for_value("backend", name, known));
  }
}

/// Each value in the spelling that tables have, once.
std::vector<std::string> listed_values(const training::FlagRow& row, const std::string& text) {
  constexpr std::size_t kMost = 1000;
  const bool has_default = cells::listed_flag(row.name)->usual == cells::kOwnDefault;
  std::vector<std::string> values;
  for (const std::string& part : split(text, ',')) {
    std::string value = part;
    if (!part.empty() && !(has_default && part == cells::kOwnDefault)) {
      training::TrainingFlags flags;
      if (row.only_words) cli::Flags::check_choice(row.name, part, row.words);
      row.set(flags, part);
      value = row.spelling(flags);
    }
    const bool again = std::ranges::find(values, value) != values.end();
    if (value.empty() || again || values.size() == kMost) {
      fail(ExitCode::usage, "--{} {}: must be different values, with one comma between each two",
           row.name, text);
    }
    values.push_back(value);
  }
  return values;
}

/// A flag that every training gets as it is; of the others the sweep makes what it needs.
bool is_handed_on(const SweepOptions& options, const std::string& flag) {
  return options.of_trainings.contains(flag) && flag != "limit-train" && flag != "limit-val" &&
         !cells::listed_flag(flag);
}

/// Flags for every training, and their values.
std::vector<std::pair<std::string, std::string>> handed_on(const SweepOptions& options) {
  std::vector<std::pair<std::string, std::string>> flags;
  for (const auto& flag : options.given) {
    if (is_handed_on(options, flag.first)) flags.push_back(flag);
  }
  if (!options.sweep.full_epochs) return flags;
  flags.emplace_back("epochs", std::to_string(options.epochs.value_or(2)));
  if (options.limit_train) flags.emplace_back("limit-train", std::to_string(*options.limit_train));
  if (options.limit_val) flags.emplace_back("limit-val", std::to_string(*options.limit_val));
  if (options.target_accuracy) {
    flags.emplace_back("target-accuracy", fmt::format("{}", *options.target_accuracy));
  }
  return flags;
}

/// Words for every training of the sweep, whatever its cell.
std::vector<std::string> passed_on(const SweepOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : handed_on(options)) {
    words.push_back("--" + name);
    if (!options.switches.contains(name)) words.push_back(value);
  }
  return words;
}

/// The flags among them that make another experiment of it, but for those that have a field of
/// their own in a table.
std::map<std::string, std::string> options_of(const SweepOptions& options) {
  const std::set<std::string> said{"model", "image-size",  "data",
                                   "seed",  "limit-train", "limit-val"};
  std::map<std::string, std::string> texts;
  if (!options.sweep.launcher.empty()) texts["launcher"] = options.sweep.launcher;
  for (const auto& [name, value] : handed_on(options)) {
    if (!said.contains(name)) texts[name] = options.switches.contains(name) ? "true" : value;
  }
  return texts;
}

void add_grid_flags(cli::Flags& f, SweepOptions& c, const cli::CommandLineChoices& choices) {
  const std::string usual = choices.backend_names().front();
  const std::vector<std::string> columns = column_names(choices);
  c.sweep.grid.backends = {usual};
  f.group("Grid");
  f.wholes("np", c.sweep.grid.cpus, 1, sweep::kMostColumn,
           "CPUs of each column [1,2,4,... up to those here]");
  f.wholes("gpus", c.sweep.grid.gpus, 1, sweep::kMostColumn,
           "GPUs of each column of --backend cuda, a rank each; --np then counts the CPUs of other "
           "columns alone [as --np]");
  f.wholes("threads", c.sweep.grid.threads, 1, 4096,
           "threads of each rank: --np 4 makes 4 / N ranks [1]");
  f.wholes("batch", c.sweep.grid.batches, 1, 16'777'216,
           "images in a step, over all ranks [the model's]");
  f.alias("batch-size", "batch");
  f.wholes("batch-per-rank", c.sweep.grid.batches_per_rank, 1, 16'777'216,
           "images in a step of each rank, for weak scaling, beside --batch or in its place");
  f.parsed("backend", "NAME,...",
           "columns of the table, some of " + join(columns, ", ") +
               "; a backend that this build lacks is n/a [" + usual + "]",
           [&c, columns](const std::string& text) { set_backends(c, columns, text); });
  f.suggest("backend", columns);
  f.group("Measurement");
  f.whole("repeat", c.sweep.repeats, 1, 1000,
          "trainings of each cell; the table has their median [3]");
  f.whole("steps", c.steps, 1, 1'000'000,
          "measured steps of each training, scaled to an epoch; steps with autotuning come before "
          "them [5, or up to 25 that hold 2,048 images]");
  f.yes("full-epochs", c.sweep.full_epochs,
        "measure whole epochs with evaluation, in place of steps");
  add_row(f, c, "epochs",
          "with --full-epochs: epochs of each training; the first does not count where there are "
          "more [2]");
  add_row(f, c, "target-accuracy",
          "with --full-epochs: measure the time until the accuracy of validation reaches X");
  f.text("launcher", c.sweep.launcher, "WORDS",
         "what starts ranks, such as 'mpirun --hostfile hosts'; {ranks} and {threads} in it are "
         "replaced, and without {ranks} -np RANKS is added [mpirun, bound for this machine]");
  f.yes("oversubscribe", c.sweep.oversubscribe,
        "also measure cells of more CPUs than this machine has [they are n/a]");
}

/// From here on flags of trainings that are axes take a list, of which the trainings that are
/// planned with have the first value.
void take_lists(cli::Flags& f, SweepOptions& c) {
  f.add_rows_by(
      [&](const training::FlagRow& row, training::TrainingFlags& flags, const std::string& help) {
        if (!cells::listed_flag(row.name)) return false;
        f.parsed(row.name, row.meta + ",...", help, [&](const std::string& text) {
          std::vector<std::string>& values = c.sweep.grid.listed[row.name];
          values = listed_values(row, text);
          sweep::set_value(flags, row.name, values.front());
        });
        f.suggest(row.name, row.words);
        return true;
      });
}

void add_sweep_output_flags(cli::Flags& f, SweepOptions& c) {
  f.group("Output");
  f.text("out", c.out, "DIR",
         "folder of this sweep; it goes on with what is there [sweeps/<model>]");
  f.yes("overwrite", c.overwrite, "throw away the sweep that --out holds");
  f.yes("extend", c.sweep.extend,
        "add the values of the grid's flags to the sweep that --out holds; what is measured stays");
  f.text("machine-name", c.sweep.machine_name, "NAME",
         "what you call this machine: the first word of its series in tables");
  f.text("reference", c.reference, "FILE", "published table to show in the report");
  f.yes("plan-only", c.sweep.plan_only,
        "write plan.txt, a line per training, and measure nothing; for job arrays");
  f.whole("task", c.sweep.task, 1, 1'000'000,
          "measure the Nth cell alone and write its cell.json; several tasks may run at once");
  f.yes("collect", c.sweep.collect,
        "gather what tasks have measured into cells.json, and measure nothing");
  f.yes("retry", c.sweep.retry, "measure failed cells again");
}

/// Tells the sweep what each backend can compute in.
void settle_precisions(SweepOptions& options, const cli::CommandLineChoices& choices) {
  sweep::SweepRequest& sweep = options.sweep;
  for (const training::BackendChoice& backend : choices.backends) {
    if (backend.built) sweep.precisions[backend.name] = words_of(backend.precisions);
  }
  const auto asked = sweep.grid.listed.find("precision");
  if (asked == sweep.grid.listed.end()) return;
  const auto can = [](const std::vector<std::string>& precisions, const std::string& value) {
    return value == cells::kOwnDefault || std::ranges::find(precisions, value) != precisions.end();
  };
  for (const std::string& value : asked->second) {
    const auto serves = [&](const std::string& backend) {
      return !sweep.precisions.contains(backend) || can(sweep.precisions.at(backend), value);
    };
    if (std::ranges::any_of(sweep.grid.backends, serves)) continue;
    fail(ExitCode::usage, "--precision {} needs --backend {}", value,
         join(choices.backends_with(parse_word<Precision>("precision", value)), " or "));
  }
  for (const std::string& backend : sweep.grid.backends) {
    const auto here = sweep.precisions.find(backend);
    if (here == sweep.precisions.end()) continue;
    if (std::ranges::any_of(asked->second,
                            [&](const auto& value) { return can(here->second, value); })) {
      continue;
    }
    fail(ExitCode::usage,
         "--backend {}: it computes in {}, and --precision {} asks for none of them (it could have "
         "no cell); add one of them, or leave the backend out",
         backend, join(here->second, ", "), join(asked->second, ","));
  }
}

void check_combinations(const SweepOptions& options) {
  const auto refuse_if = [](bool wrong, const std::string& why) {
    if (wrong) fail(ExitCode::usage, why);
  };
  const bool whole = options.sweep.full_epochs, collect = options.sweep.collect,
             task = options.sweep.task.has_value(), extend = options.sweep.extend,
             retry = options.sweep.retry, overwrite = options.overwrite;
  refuse_if((options.epochs || options.target_accuracy) && !whole,
            fmt::format("--{} needs --full-epochs (a sweep else measures some steps)",
                        options.epochs ? "epochs" : "target-accuracy"));
  if (options.schedule && std::holds_alternative<optim::Plateau>(*options.schedule)) {
    refuse_if(!whole, fmt::format("--schedule {} needs --full-epochs (it watches the loss of "
                                  "validation, and steps alone are not evaluated)",
                                  optim::schedule_text(*options.schedule)));
  }
  refuse_if(options.steps && whole, "--steps and --full-epochs exclude each other; leave one out");
  refuse_if(options.limit_val && !whole,
            "--limit-val needs --full-epochs (steps alone are not evaluated)");
  refuse_if(options.sweep.plan_only + collect + task > 1,
            "--plan-only, --task and --collect exclude each other; name one");
  refuse_if(extend && options.out.empty(),
            "--extend needs --out DIR, the folder of the sweep to add cells to");
  refuse_if(
      extend && (task || collect || overwrite),
      fmt::format("--extend and --{} exclude each other; leave one out", overwrite ? "overwrite"
                                                                         : task    ? "task"
                                                                                   : "collect"));
  refuse_if(overwrite && (task || collect),
            fmt::format("--overwrite and --{} exclude each other (it would throw away what other "
                        "tasks have measured); give --overwrite to --plan-only",
                        task ? "task" : "collect"));
  refuse_if(
      retry && collect,
      "--retry and --collect exclude each other (nothing is measured); give --retry to --task");
  constexpr std::size_t kLongestName = 60;
  const std::string& name = options.sweep.machine_name;
  refuse_if(name.size() > kLongestName || printable(name) != name,
            fmt::format("--machine-name {}: must be a name of at most {} bytes in one line",
                        printable(name), kLongestName));
  std::error_code ignored;
  refuse_if(
      !options.reference.empty() && !std::filesystem::is_regular_file(options.reference, ignored),
      fmt::format("--reference {}: there is no such file", options.reference));
}

}  // namespace

void add_sweep_flags(cli::Flags& f, SweepOptions& c, const cli::CommandLineChoices& choices) {
  add_grid_flags(f, c, choices);
  const std::set<std::string> grid = f.names();
  take_lists(f, c);
  add_learning_flags(f, c, {"micro-batch"});
  add_stall_flags(f, c);
  f.group("Machine");  // whose grid has the rest of them
  add_precision_flag(f, c, choices);
  add_row(f, c, "bind");
  add_row(f, c, "io-threads");
  add_row(f, c, "cache");
  add_backend_options(f, c, choices);
  add_part(f, c, "input");
  add_part(f, c, "exchange");
  std::ranges::set_difference(f.names(), grid, std::inserter(c.of_trainings, c.of_trainings.end()));
  add_sweep_output_flags(f, c);
}

void settle_sweep(SweepOptions& options, const cli::CommandLineChoices& choices) {
  settle_precisions(options, choices);
  check_combinations(options);
  options.sweep.passed_on = passed_on(options);
  options.sweep.options = options_of(options);
}

}  // namespace cputrain::commands
