#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/text.h"
#include "data/dataset.h"
#include "system/file_lock.h"
#include "system/files.h"
#include "training/asked_end.h"
#include "training/run/same_training.h"
#include "training/run/timeline_file.h"
#include "training/run/training_run.h"
#include "training/weights/named_weights.h"
#include "training/weights/start_weights.h"

namespace cputrain::commands {
namespace {

struct TrainOptions : cli::Options {
  bool dry_run = false;
  std::string end_with;
};

void add_train_flags(cli::Flags& f, TrainOptions& c, const cli::CommandLineChoices& choices) {
  add_learning_flags(f, c, {"batch", "micro-batch", "shares", "length"});
  f.group("Checkpoints");
  add_part(f, c, "checkpoints");
  add_stall_flags(f, c);
  add_machine_flags(f, c, choices);
  for (const char* part : {"decoding", "input"}) add_part(f, c, part);
  add_part(f, c, "exchange");
  f.group("Output");
  add_part(f, c, "output");
  f.text("end-with", c.end_with, "FILE",
         "end when no process has a lock on FILE any more; sweeps start ranks with it");
  f.for_developers("end-with");
  add_part(f, c, "logs");
  f.yes("dry-run", c.dry_run, "show placement, memory and the number of steps, and train nothing");
  f.text("json", c.json, "FILE",
         "with --dry-run: write the plan as JSON (-: to standard output, and nothing else there)");
}

/// Layers that learn nothing are usually those of weights that are named.
void warn_of_freezing_alone(const training::Training& training, const TrainOptions& options) {
  const auto nodes = training.plan().graph.nodes();
  const bool freezes = std::ranges::any_of(nodes, &model::Graph::Node::frozen);
  if (!freezes || !options.weights.empty()) return;
  training::warn(training.session(),
                 "--freeze {} without --weights: these layers stay as they were drawn at random "
                 "(the others learn from noise); name --weights FILE, whose layers are worth "
                 "keeping, or leave --freeze out",
                 join(options.freeze, ","));
}

/// What can be gone on from, and gone back to. A checkpoint's own run is gone on with where no
/// other folder is named.
void check_safety(cli::Options& options) {
  const training::SafetyFlags& safety = options.safety;
  if (!safety.resume.empty() && options.overwrite) {
    fail(ExitCode::usage,
         "--resume goes on with a run, which --overwrite would replace; leave one of them out");
  }
  if (safety.resume == "auto" && options.out.empty()) {
    fail(ExitCode::usage,
         "--resume auto needs --out DIR, the folder of the run to go on with (each run without a "
         "name has a folder of its own)");
  }
  if (!safety.resume.empty() && safety.resume != "auto" && options.out.empty()) {
    const std::filesystem::path folder = system::absolute_path(safety.resume) + "/";
    const std::filesystem::path parent = folder.parent_path().parent_path();
    // A copy may lie anywhere.
    if (system::is_present(parent / training::kConfigName)) options.out = parent;
  }
  if (safety.early_stopping && !safety.keeps_best()) {
    fail(ExitCode::usage,
         "--early-stopping ends with the best weights, which --no-save-best does not keep; leave "
         "one of them out");
  }
  if (safety.on_nan == loop::NanPolicy::rollback && !safety.takes_checkpoints()) {
    fail(ExitCode::usage,
         "--on-nan rollback goes back to a checkpoint, and --checkpoint-every 0 takes none; leave "
         "one of them out");
  }
}

void check_train(TrainOptions& c, const cli::CommandLineChoices&) {
  c.task.advised = c.end_with.empty();  // a sweep's ranks have its flags, and its steps
  check_partial(c);
  if (c.settled_steps && !c.steps) {
    fail(ExitCode::usage, "--settled-steps needs --steps, which it may prolong");
  }
  if (c.profile && c.dry_run) {
    fail(ExitCode::usage, "--profile with --dry-run, which trains nothing; leave one out");
  }
  if (!c.json.empty() && !c.dry_run) {
    fail(ExitCode::usage,
         "--json {}: a training writes metrics.jsonl into its folder; add --dry-run for the plan "
         "alone, or leave --json out",
         c.json);
  }
  check_safety(c);
  training::check_watchers(c);
}

/// A training that goes on has the weights of its checkpoint: those that it began with may be gone.
void choose_train_files(TrainOptions& options, const std::function<void()>& choose) {
  const bool may_go_on = !options.safety.resume.empty() && !options.dry_run;
  // A file that is called so is one that was named.
  const bool named = options.weights != cli::kImageNet || system::is_present(cli::kImageNet);
  if (may_go_on && named && !training::weights_are_there(options.weights)) return;
  try {
    choose();
  } catch (const Error& error) {
    if (!may_go_on || error.code() != ExitCode::data) throw;
    if (!named) return;  // none are kept: see need_weights()
    fail(error.code(), "{}; a training that goes on needs no --weights", error.what());
  }
}

/// Warns of an --out inside of the data, since what lies there is read as data.
void warn_of_run_in_data(const training::Session& session, const TrainOptions& options) {
  namespace fs = std::filesystem;
  const data::DataSpec data = data::parse_data_spec(options.data_or_synthetic());
  std::error_code none;  // what is not there shows when it is read
  if (!data.word.empty() || options.out.empty() || !system::is_folder(data.parts.front())) {
    return;
  }
  const fs::path folder = fs::canonical(data.parts.front(), none);
  const fs::path out = fs::weakly_canonical(fs::absolute(options.out, none), none);
  const fs::path way = out.lexically_relative(folder);
  if (way.empty() || *way.begin() == "..") return;
  training::warn(session,
                 "--out {} lies in the data, {}: its files are passed over there, but images that "
                 "are put into it would be learnt; better name a folder outside",
                 options.out, data.parts.front());
}

/// Refuses --weights that are not there where --resume auto turns out to begin a training.
void need_weights(const training::Session& session, const training::Start& start,
                  const TrainOptions& options) {
  if (options.safety.resume.empty() || start.goes_on || start.finished) return;
  if (session.leads() && !training::weights_are_there(options.weights)) {
    cli::check_named_weights(options, session.services);
  }
  session.communicator->barrier();  // a refusal is rank 0's, and the job's
}

void warn_of_flags(const training::Training& training, bool goes_on, const TrainOptions& options) {
  if (!options.task.advised) return;
  const auto reason = [&](const std::string& flag) {
    const std::string why = why_idle_in_training(options, flag, {options.backend});
    return why.empty() ? cli::why_idle_in(training, flag) : why;
  };
  for (const std::string& line : idle_flags(options, reason))
    training::warn(training.session(), line);
  if (!goes_on) warn_of_freezing_alone(training, options);
}

ExitCode run_train(const TrainOptions& options, const training::Services& services) {
  // No rank outlives the sweep that it measures for: mpirun leaves ranks behind where it is killed.
  if (!options.end_with.empty()) {
    const auto probe = std::make_shared<system::LockProbe>(options.end_with);
    services.signals->end_when([probe] { return !probe->held(); });
  }
  training::TrainingSpec spec = training::choose_training(options);
  const training::Session session = training::start_session(options, services);
  ask_for_data(session, options);  // before images are made up, which takes a while
  warn_of_run_in_data(session, options);
  training::RunFolder folder;
  training::Start start;
  if (!options.dry_run) {
    folder = training::take_run_folder(session, options);
    start = training::choose_start(session, spec, folder);
    need_weights(session, start, options);
    spec = training::with_choices_of(start, std::move(spec));
  }
  training::Training training = training::open_training(session, spec);
  if (options.dry_run) {
    if (!options.safety.resume.empty()) {
      training::say(session,
                    "--dry-run does not look at --resume {}: this is the plan of the training from "
                    "its beginning",
                    options.safety.resume);
    }
    training.compile();
    training::check_timeline_steps(training);
    training::check_first_weights(session, training.plan(), training.source());
    warn_of_flags(training, false, options);
    print_dry_run(training, options.json);
    return ExitCode::ok;
  }
  nlohmann::ordered_json identity = training::training_identity(training);
  if (start.finished) {
    training::check_finished(session, folder.path, start.checkpoint, spec, identity);
    session.communicator->barrier();  // a refusal is rank 0's, and the job's
    return ExitCode::ok;
  }
  if (start.goes_on) training::check_same_training(session, start.checkpoint, spec, identity);
  training.compile();
  training::check_timeline_steps(training);
  if (!start.goes_on) training::check_first_weights(session, training.plan(), training.source());
  warn_of_flags(training, start.goes_on, options);
  // The folder before the long work: a full disk or a wrong --out shows at once.
  training::open_run_folder(session, training.plan(), folder);
  return training::train_in_folder(training, folder, start, std::move(identity));
}

}  // namespace

std::unique_ptr<cli::Command> make_train() {
  return cli::make_command<TrainOptions>(
      {.help = {.name = "train",
                .summary = "train, evaluate and save a classifier (the default command)",
                .about =
                    "Trains a classifier, evaluates it after each epoch and saves its weights in a "
                    "run folder. This is what runs where flags are given without a command.",
                .examples = {{"cputrain --model efficientnet-lite0 --weights imagenet --freeze "
                              "all-but-head --data photos",
                              "Trains a new last layer on class folders (photos/cat/*.jpg, "
                              "photos/dog/*.jpg): quickest for few images."},
                             {"cputrain --data photos --epochs 20 --out runs/first",
                              "Trains a network from nothing, with all cores."},
                             {"mpirun -np 4 cputrain --data photos --batch 256",
                              "Trains with four ranks, which share each batch of 256 images."},
                             {"cputrain --data photos --out runs/first --resume auto",
                              "Goes on with a run that was interrupted."}},
                .common = {"data", "model", "weights", "freeze", "image-size", "batch", "epochs",
                           "optimizer", "lr", "augment", "validation-split", "early-stopping",
                           "seed", "out", "resume", "dry-run"},
                .others = "fit,training,learn,run,start,finetune,fine-tune,classify"},
       .add_flags = add_train_flags,
       .check = check_train,
       .choose_files = choose_train_files,
       .run = run_train,
       .results_are_files = [](const TrainOptions& c) { return !c.dry_run; }});
}

}  // namespace cputrain::commands
