#include "training/run/finished_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "training/asked_end.h"
#include "training/run/run_folder.h"
#include "training/run/run_weights.h"
#include "training/run/taken_over.h"
#include "training/run/training_identity.h"

namespace cputrain::training {
namespace {

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
    end_of_json(known[kEnd]);
  } catch (const Error&) {
    return {};
  }
  return known;
}

/// Whether it compared its last epochs with the best one.
bool kept_best(const nlohmann::ordered_json& training) {
  if (!training.is_object()) return false;
  const nlohmann::ordered_json& end = training.at(kEnd);
  return end.contains(kSaveBest) || end_of_json(end).patience;
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

/// In how far the run is not what is asked for.
std::vector<std::string> differences(const nlohmann::ordered_json& then,
                                     const nlohmann::ordered_json& identity,
                                     const loop::Progress& progress, const TrainingSpec& spec) {
  auto rows = identity_differences(then, identity, Compared::finished_run);
  const loop::TrainingEnd then_end = end_of_json(then.at(kEnd)), now = end_of(spec);
  const auto ends = end_differences(then_end, now, progress, spec.learning_rate.schedule);
  rows.insert(rows.end(), ends.begin(), ends.end());
  const SafetyFlags& safety = spec.flags.safety;
  if (safety.save_best && !kept_best(then)) rows.push_back("save-best: off in the run, on here");
  const auto is_told = [](const std::string& row) { return row.starts_with(kMonitor); };
  if (safety.keeps_best() && kept_best(then) && then_end.monitor != now.monitor &&
      std::ranges::none_of(rows, is_told)) {
    rows.push_back(fmt::format("{}: {} in the run, {} here", kMonitor, word_of(then_end.monitor),
                               word_of(now.monitor)));
  }
  return rows;
}

}  // namespace

bool is_finished(const std::filesystem::path& folder) {
  const auto summary = runfiles::summary_at_end(folder / runfiles::kMetricsName);
  return summary && !summary->interrupted;
}

bool has_ended(const std::filesystem::path& folder) {
  return runfiles::summary_at_end(folder / runfiles::kMetricsName).has_value();
}

bool is_at_its_end(const std::filesystem::path& folder, const std::filesystem::path& checkpoint,
                   const TrainingSpec& spec) {
  const runfiles::SummaryLine summary = summary_of(folder);
  const nlohmann::ordered_json training = training_of(summary);
  const loop::TrainingEnd now = end_of(spec);
  const loop::TrainingEnd then = training.is_null() ? now : end_of_json(training.at(kEnd));
  loop::Progress progress = progress_of(summary, then, checkpoint);
  const bool begins_anew = !kept_best(training) || then.monitor != now.monitor;
  if (begins_anew) progress.patience = {};  // see take_up_best()
  return loop::is_over(now, progress);
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
  const loop::Progress progress = progress_of(summary, end_of_json(then.at(kEnd)), checkpoint);
  const auto rows = differences(then, identity, progress, spec);
  if (rows.empty()) {
    say(session, fmt::format("The training in {} is finished ({}); nothing is left to do",
                             folder.string(), end_text(end_of(spec), progress)));
    return say_missing_best(session, folder, spec.flags.safety);
  }
  for (const std::string& row : rows) warn(session, row);
  fail(
      ExitCode::usage,
      fmt::format("--resume auto: the training in {} is finished, and it is another one than this, "
                  "see above (nothing would be trained); name another --out, repeat its flags "
                  "(--config {} has them), or replace it with --overwrite in place of --resume{}",
                  folder.string(), quoted((folder / kConfigName).string()),
                  train_on_advice(session, spec, rows, folder, folder)));
}

}  // namespace cputrain::training
