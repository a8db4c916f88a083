#include "training/run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "training/asked_end.h"
#include "training/run/run_logs.h"
#include "training/run/run_weights.h"
#include "training/run/taken_over.h"
#include "training/run/training_identity.h"

namespace cputrain::training {
namespace {

/// Whether the facts are such as RunControl writes.
std::string fault_of_facts(const nlohmann::ordered_json& facts) {
  for (const char* name : {"training", "logs"}) {
    if (!facts.contains(name) || !facts.at(name).is_object()) {
      return fmt::format("state.json has no {}", name);
    }
  }
  for (const char* name : {"ranks", "nodes"}) {
    if (!facts.contains(name) || !facts.at(name).is_number_integer()) {
      return fmt::format("state.json has no number of {}", name);
    }
  }
  if (!facts.contains("allreduce") || !facts.at("allreduce").is_string()) {
    return "state.json does not say how gradients were summed";
  }
  comm::parse_allreduce(facts.at("allreduce"));
  check_marks(facts.at("logs"));
  if (!facts.at("training").contains(kEnd)) return "state.json has no end of the training";
  end_of_json(facts.at("training").at(kEnd));
  return {};
}

/// Empty for a checkpoint that can be gone on from.
std::string resume_fault_of(const std::filesystem::path& checkpoint) {
  std::string fault = checkpoint::fault_of(checkpoint);
  if (!fault.empty()) return fault;
  try {
    const std::uint64_t steps = checkpoint::read_progress(checkpoint).steps;
    fault = fault_of_facts(checkpoint::read_facts(checkpoint));
    if (!fault.empty()) return fault;
    const auto named = checkpoint::step_of(checkpoint.filename().string());
    if (!named || *named == steps) return {};  // a copy may have any other name
    return fmt::format("it holds the state of step {}; its name would be {}", steps,
                       checkpoint::name_of(steps));
  } catch (const Error& error) {
    return error.what();
  }
}

/// Of a run that has none: one of nothing.
runfiles::SummaryLine summary_of(const std::filesystem::path& folder) {
  return runfiles::summary_at_end(folder / runfiles::kMetricsName)
      .value_or(runfiles::SummaryLine{});
}

/// What training the run is, by its summary: null where that has none.
nlohmann::ordered_json training_of(const runfiles::SummaryLine& summary) {
  if (summary.training.empty()) return {};
  auto known = nlohmann::ordered_json::parse(summary.training);
  try {
    ending_of(known);
  } catch (const Error&) {
    return {};
  }
  return known;
}

/// What the summary knows of where the training ended.
loop::Progress progress_of(const runfiles::SummaryLine& summary, const loop::TrainingEnd& end) {
  loop::Progress progress;
  progress.steps = summary.steps;
  progress.epochs = summary.epochs;
  progress.settled_steps = end.settled_steps;
  if (end.steps && progress.epochs > 0) {  // it may have ended within its last epoch
    --progress.epochs;
    progress.begun.emplace();
  }
  progress.reached = summary.reached;
  if (progress.reached) progress.reached->target = end.target_accuracy.value_or(0);
  if (summary.early_stopped) progress.patience.waited = std::max(end.patience.value_or(1), 1);
  return progress;
}

/// Where the training ended. The checkpoint of the end knows more than the summary.
loop::Progress progress_of(const runfiles::SummaryLine& summary, const loop::TrainingEnd& end,
                           const std::filesystem::path& checkpoint) {
  if (!checkpoint.empty()) {
    loop::Progress progress = checkpoint::read_progress(checkpoint);
    if (progress.steps == summary.steps) return progress;
  }
  return progress_of(summary, end);
}

/// "20 epochs", and what ended it before its last one.
std::string end_text(const loop::TrainingEnd& end, const loop::Progress& progress) {
  const std::string made =
      fmt::format("{} in {}", counted(progress.steps, "step"),
                  counted(progress.epochs + (progress.begun ? 1 : 0), "epoch"));
  if (loop::waited_enough(end, progress)) {
    return fmt::format("{}, which --early-stopping {} ended", made, *end.patience);
  }
  if (loop::target_is_reached(end, progress)) {
    return fmt::format("{}, which --target-accuracy {:g} ended", made, *end.target_accuracy);
  }
  return made;
}

/// In how far a run that is finished is not what is asked for.
std::vector<Difference> finished_differences(const nlohmann::ordered_json& then,
                                             const nlohmann::ordered_json& identity,
                                             const loop::Progress& progress,
                                             const TrainingSpec& spec) {
  auto rows = identity_differences(then, identity, Compared::finished_run);
  const Ending now{end_of(spec), spec.flags.safety.save_best};
  const auto ends = end_differences({ending_of(then), now, progress, spec.learning_rate.schedule});
  for (const Difference& end : ends) {  // the monitor of a plateau may be told already
    if (std::ranges::count(rows, end.name, &Difference::name) == 0) rows.push_back(end);
  }
  return rows;
}

void warn_of(const Session& session, const std::vector<Difference>& rows, Compared what) {
  for (const Difference& row : rows) warn(session, to_text(row, what));
}

/// Whether a run that ended by itself is at the end, too, that is asked for now. `checkpoint` is
/// its last one, or empty where it has left none.
bool is_at_its_end(const std::filesystem::path& folder, const std::filesystem::path& checkpoint,
                   const TrainingSpec& spec) {
  const runfiles::SummaryLine summary = summary_of(folder);
  const nlohmann::ordered_json training = training_of(summary);
  const loop::TrainingEnd now = end_of(spec);
  const Ending then = training.is_null() ? Ending{now} : ending_of(training);
  loop::Progress progress = progress_of(summary, then.end, checkpoint);
  const bool begins_anew =
      training.is_null() || !then.keeps_best() || then.end.monitor != now.monitor;
  if (begins_anew) progress.patience = {};  // see take_up_best()
  return loop::is_over(now, progress);
}

Start choose_newest(const Session& session, const TrainingSpec& spec,
                    const std::filesystem::path& folder) {
  const bool finished = runfiles::is_finished(folder);
  Start start;
  start.checkpoint = newest_whole(session, folder);
  std::error_code ignored;
  start.finished = finished &&
                   is_at_its_end(folder, start.checkpoint,
                                 with_first_weights(begun_with(start.checkpoint), spec)) &&
                   std::filesystem::exists(folder / kWeightsName, ignored);
  if (start.finished) return start;
  start.goes_on = !start.checkpoint.empty();
  if (finished && !start.goes_on) {
    fail(ExitCode::usage,
         fmt::format("--resume auto: the training in {} is finished and left no checkpoint (it "
                     "would be made anew and lost); take --weights {} in another folder to train "
                     "on, or --overwrite",
                     folder.string(), (folder / kWeightsName).string()));
  }
  if (!start.goes_on && holds_run(folder)) {
    say(session, fmt::format("No checkpoint in {}: the training begins anew", folder.string()));
  }
  return start;
}

/// Going on in the checkpoint's own run would throw away what came after it.
void check_folder(const std::filesystem::path& checkpoint, const RunFolder& folder) {
  if (!folder.has(checkpoint)) {
    if (!holds_run(folder.path)) return;
    fail(ExitCode::usage,
         fmt::format("--resume {}: --out {} holds another run (the two would mix); name another "
                     "folder",
                     checkpoint.string(), folder.path.string()));
  }
  const auto all = checkpoint::list(folder.path);
  if (all.empty() || all.front().step <= checkpoint::read_progress(checkpoint).steps) return;
  fail(ExitCode::usage,
       fmt::format("--resume {}: {} in its folder is newer (it would be lost); name another folder "
                   "with --out, or move the newer ones away",
                   checkpoint.string(), all.front().folder.filename().string()));
}

/// Where a link leads to. One that leads nowhere was made of a checkpoint that newer ones replaced.
std::filesystem::path followed(const std::filesystem::path& checkpoint) {
  std::error_code error;
  if (!std::filesystem::is_symlink(checkpoint, error)) return checkpoint;
  const std::filesystem::path real = std::filesystem::canonical(checkpoint, error);
  if (!error) return real;
  fail(ExitCode::data,
       fmt::format("--resume {}: the link leads to {}, which is not there (a checkpoint goes when "
                   "newer ones come); use --resume auto with the --out of the run, or link to one "
                   "that is there",
                   checkpoint.string(), std::filesystem::read_symlink(checkpoint, error).string()));
}

void check_is_folder(const std::filesystem::path& checkpoint) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(checkpoint, ignored)) {
    fail(ExitCode::data,
         fmt::format("--resume {}: there is no such folder (nothing can go on from it); name a "
                     "folder ckpt-<step>, or auto",
                     checkpoint.string()));
  }
  if (checkpoint::list(checkpoint).empty()) return;
  fail(
      ExitCode::usage,
      fmt::format("--resume {0}: it is the folder of a run, not of a checkpoint; use --resume auto "
                  "--out {0}",
                  checkpoint.string()));
}

Start choose_named(const TrainingSpec& spec, const RunFolder& folder) {
  std::filesystem::path checkpoint = spec.flags.safety.resume;
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();  // "DIR/"
  checkpoint = followed(checkpoint);
  check_is_folder(checkpoint);
  const std::string fault = resume_fault_of(checkpoint);
  if (!fault.empty()) {
    fail(ExitCode::data,
         fmt::format("--resume {}: {} (nothing can go on from it); name another checkpoint, a "
                     "folder ckpt-<step>, or use --resume auto",
                     checkpoint.string(), fault));
  }
  if (!folder.path.empty()) check_folder(checkpoint, folder);
  Start start;
  start.goes_on = true;
  start.elsewhere = !folder.has(checkpoint);
  start.checkpoint = checkpoint;
  return start;
}

Start choose(const Session& session, const TrainingSpec& spec, const RunFolder& folder) {
  const std::string& resume = spec.flags.safety.resume;
  if (!session.leads() || resume.empty()) return {};
  if (resume != "auto") return choose_named(spec, folder);
  return folder.path.empty() ? Start{} : choose_newest(session, spec, folder.path);
}

/// So that neither the training's own checkpoints nor their pruning meet them.
void set_aside(const Session& session, const std::vector<checkpoint::Found>& damaged) {
  for (const checkpoint::Found& found : damaged) {
    const std::string name = found.folder.filename().string(),
                      kept = checkpoint::set_aside(found).filename().string();
    warn(session, kept != name
                      ? fmt::format("{} is kept as {}", name, kept)
                      : fmt::format("{} cannot be renamed: it stays until another one of its step "
                                    "takes its place",
                                    name));
  }
}

}  // namespace

std::filesystem::path newest_whole(const Session& session, const std::filesystem::path& folder) {
  std::vector<checkpoint::Found> damaged;
  for (const checkpoint::Found& found : checkpoint::list(folder)) {
    const std::string fault = resume_fault_of(found.folder);
    if (fault.empty()) {
      set_aside(session, damaged);
      return found.folder;
    }
    warn(session,
         fmt::format("checkpoint {} is passed over: {}", found.folder.filename().string(), fault));
    damaged.push_back(found);
  }
  if (damaged.empty()) return {};
  fail(ExitCode::data,
       fmt::format("of {} in {} none can be gone on from, see above (a training "
                   "that began anew would take their place); mend what keeps them from being read, "
                   "or begin anew with --overwrite",
                   counted(damaged.size(), "checkpoint"), folder.string()));
}

Start choose_start(const Session& session, const TrainingSpec& spec, const RunFolder& folder) {
  Start start = choose(session, spec, folder);
  take_over(session, spec, start);
  const auto found = comm::gather_values(
      *session.communicator, std::array<bool, 3>{start.finished, start.goes_on, start.elsewhere});
  start.finished = found.front()[0];
  start.goes_on = found.front()[1];
  start.elsewhere = found.front()[2];
  return start;
}

namespace {

/// Another backend or precision may go on with a training; losses may show where.
void say_other_program(const Session& session, const nlohmann::ordered_json& then,
                       const nlohmann::ordered_json& here) {
  const std::string before = program_text(then), now = program_text(here);
  if (before.empty() || before == now) return;
  say(session,
      fmt::format("The checkpoint was written with {}; this goes on with {}", before, now));
}

[[noreturn]] void refuse_less(const std::filesystem::path& checkpoint, const loop::TrainingEnd& end,
                              const loop::Progress& progress) {
  fail(ExitCode::usage,
       fmt::format("--resume: {} has {}, {} of them in {}, and --{} {} asks for "
                   "less (nothing would be trained); ask for more, or name another --out for a "
                   "shorter training",
                   checkpoint.string(), counted(progress.steps, "step"),
                   progress.steps - (progress.begun ? progress.begun->steps : 0),
                   counted(progress.epochs, "whole epoch"), end.steps ? "steps" : "epochs",
                   end.steps ? *end.steps : static_cast<std::uint64_t>(end.epochs)));
}

}  // namespace

void check_same_training(const Session& session, const std::filesystem::path& checkpoint,
                         const TrainingSpec& spec, nlohmann::ordered_json& identity) {
  if (!session.leads()) return;
  const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
  const auto rows = identity_differences(facts.at("training"), identity, Compared::checkpoint);
  warn_of(session, rows, Compared::checkpoint);
  const bool other_weights = std::ranges::count(rows, kFirstWeights, &Difference::name) > 0;
  if (!rows.empty()) {
    fail(ExitCode::usage,
         fmt::format("--resume: {} is of another training, see above (what follows would be "
                     "neither of the two); repeat its flags (--config {} has them){}, or name "
                     "another --out{}",
                     checkpoint.string(), quoted((checkpoint.parent_path() / kConfigName).string()),
                     other_weights ? ", leave --weights out (the checkpoint's are newer)" : "",
                     train_on_advice(session, spec, rows, checkpoint, checkpoint.parent_path())));
  }
  say_other_program(session, facts.at("training"), identity);
  const loop::TrainingEnd end = end_of(spec);
  const loop::Progress progress = checkpoint::read_progress(checkpoint);
  if (asks_for_less(end, progress)) refuse_less(checkpoint, end, progress);
  const nlohmann::ordered_json& training = facts.at("training");
  if (training.contains(kFirstWeights)) identity[kFirstWeights] = training.at(kFirstWeights);
}

void check_finished(const Session& session, const std::filesystem::path& folder,
                    const std::filesystem::path& checkpoint, const TrainingSpec& spec,
                    const nlohmann::ordered_json& identity) {
  if (!session.leads()) return;
  const runfiles::SummaryLine summary = summary_of(folder);
  const nlohmann::ordered_json then = training_of(summary);
  if (then.is_null()) {
    fail(ExitCode::usage,
         fmt::format("--resume auto: the finished training in {} does not say what it was (it may "
                     "be another one, and nothing would be trained); name another --out, or "
                     "replace it with --overwrite in place of --resume",
                     folder.string()));
  }
  const loop::Progress progress = progress_of(summary, ending_of(then).end, checkpoint);
  const auto rows = finished_differences(then, identity, progress, spec);
  if (rows.empty()) {
    say(session, fmt::format("The training in {} is finished ({}); nothing is left to do",
                             folder.string(), end_text(end_of(spec), progress)));
    return say_missing_best(session, folder, spec.flags.safety);
  }
  warn_of(session, rows, Compared::finished_run);
  fail(
      ExitCode::usage,
      fmt::format("--resume auto: the training in {} is finished, and it is another one than this, "
                  "see above (nothing would be trained); name another --out, repeat its flags "
                  "(--config {} has them), or replace it with --overwrite in place of --resume{}",
                  folder.string(), quoted((folder / kConfigName).string()),
                  train_on_advice(session, spec, rows, folder, folder)));
}

}  // namespace cputrain::training
