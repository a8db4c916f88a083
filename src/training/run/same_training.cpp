#include "training/run/same_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <variant>

#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "training/asked_end.h"
#include "training/run/run_control.h"
#include "training/run/run_folder.h"
#include "training/weights/named_weights.h"

namespace cputrain::training {
namespace {

/// What holds where a file has no such name.
std::string before(std::string_view name) {
  if (name == kMonitor) return std::string(word_of(optim::Monitor::loss));
  return kNone;
}

std::string shown(const nlohmann::ordered_json& object, const char* name) {
  if (!object.contains(name)) return before(name);
  const auto& value = object.at(name);
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

/// 1e-3 and 0.001 are one.
bool are_same(const std::string& a, const std::string& b) {
  if (hash_or_text(a) == hash_or_text(b)) return true;
  const auto x = number_in<double>(a);
  return x && x == number_in<double>(b);
}

/// Whether this is still the same training where the text of that name is another one.
bool may_differ(std::string_view name, const nlohmann::ordered_json& then,
                const nlohmann::ordered_json& here, Compared what) {
  // A training may change them as it goes on; one that is finished would not be made anew.
  if (name == kBackend || name == kPrecision) return what == Compared::checkpoint;
  // A resume need not name the weights that a training began with, nor have them.
  if (name == kFirstWeights) {
    const bool named = here.contains(kFirstWeights);
    const bool gone =
        then.contains(kFirstWeights) && shown(here, kFirstWeights).ends_with(kNotThere);
    return gone || (what == Compared::checkpoint && !named);
  }
  if (name != kEvalEvery) return false;
  // Unless rates or the end follow from how many evaluations there were, in both.
  const auto waits = [](const nlohmann::ordered_json& training) {
    return training.contains(kEnd) && end_of_json(training.at(kEnd)).patience;
  };
  const bool follow = shown(here, "schedule").starts_with("plateau");
  return !follow && !(waits(then) && waits(here));
}

std::string stopping_text(const loop::TrainingEnd& end) {
  if (!end.patience) return "none";
  return end.min_delta == 0 ? fmt::format("{}", *end.patience)
                            : fmt::format("{}:{}", *end.patience, end.min_delta);
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

/// Where --epochs and --steps end the training, and how often it is asked for settled ones.
bool have_one_length(const loop::TrainingEnd& a, const loop::TrainingEnd& b) {
  return a.steps == b.steps && a.settled_steps == b.settled_steps &&
         (a.steps || a.epochs == b.epochs);
}

bool is_exactly(const loop::TrainingEnd& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps == progress.steps;
  return end.epochs == progress.epochs && !progress.begun;
}

/// Whether the rate of every step depends on where the training ends.
bool follows_end(const optim::Schedule& schedule) {
  return std::holds_alternative<optim::CosineDecay>(schedule) ||
         std::holds_alternative<optim::PolynomialDecay>(schedule);
}

/// Whether what is asked for ends elsewhere than the run did, or was led there by another rate.
bool is_elsewhere(const Ends& ends) {
  const loop::TrainingEnd &then = ends.then.end, &now = ends.now.end;
  if (have_one_length(then, now)) return false;
  const bool same_place =
      !asks_for_less(now, ends.progress) &&
      (is_exactly(now, ends.progress) || !loop::steps_are_made(now, ends.progress));
  return !same_place || follows_end(ends.schedule);
}

bool target_is_other(const Ends& ends) {
  const auto &then = ends.then.end.target_accuracy, &now = ends.now.end.target_accuracy;
  return now && (!then || *now < *then);
}

bool patience_is_other(const Ends& ends) {
  const loop::TrainingEnd &then = ends.then.end, &now = ends.now.end;
  if (!now.patience) return false;
  return !then.patience || *now.patience < *then.patience || now.min_delta != then.min_delta;
}

bool best_is_by_another(const Ends& ends) {
  return ends.now.keeps_best() && ends.then.keeps_best() &&
         ends.then.end.monitor != ends.now.end.monitor;
}

/// By what a finished run may be another one than what is asked for, and what it is in either.
struct EndRow {
  const char* name;
  bool (*is_other)(const Ends&);
  std::string (*text)(const Ending&);
};
constexpr EndRow kEndRows[] = {
    {"epochs", is_elsewhere, [](const Ending& e) { return fmt::format("{}", e.end.epochs); }},
    {"steps", is_elsewhere, [](const Ending& e) { return text_of(e.end.steps); }},
    {"settled-steps", is_elsewhere,
     [](const Ending& e) { return fmt::format("{}", e.end.settled_steps); }},
    {"target-accuracy", target_is_other,
     [](const Ending& e) { return text_of(e.end.target_accuracy); }},
    {"early-stopping", patience_is_other, [](const Ending& e) { return stopping_text(e.end); }},
    {kSaveBest, [](const Ends& ends) { return ends.wants_best && !ends.then.keeps_best(); },
     [](const Ending& e) { return std::string(e.keeps_best() ? "on" : "off"); }},
    {kMonitor, best_is_by_another,
     [](const Ending& e) { return std::string(word_of(e.end.monitor)); }}};

/// Whether weights of the one do not fit the other.
bool makes_another_network(const Difference& difference) {
  return difference.name == "model" || difference.name == "network" || difference.name == "classes";
}

/// "--backend cuda --precision bf16", which a resume may change; empty where it is not known.
std::string program_text(const nlohmann::ordered_json& identity) {
  if (!identity.contains(kBackend) || !identity.contains(kPrecision)) return "";
  return fmt::format("--backend {} --precision {}", shown(identity, kBackend),
                     shown(identity, kPrecision));
}

/// Another backend or precision may go on with a training; losses may show where.
void say_other_program(const Session& session, const nlohmann::ordered_json& then,
                       const nlohmann::ordered_json& here) {
  const std::string before = program_text(then), now = program_text(here);
  if (before.empty() || before == now) return;
  say_detail_once(session, "The checkpoint was written with {}; this goes on with {}", before, now);
}

[[noreturn]] void refuse_less(const std::filesystem::path& checkpoint, const loop::TrainingEnd& end,
                              const loop::Progress& progress) {
  fail(ExitCode::usage,
       "--resume: {} has {}, {} of them in {}, and --{} {} asks for less (nothing would be "
       "trained); ask for more, or name another --out for a shorter training",
       checkpoint.string(), counted(progress.steps, "step"),
       progress.steps - (progress.begun ? progress.begun->steps : 0),
       counted(progress.epochs, "whole epoch"), end.steps ? "steps" : "epochs",
       end.steps ? *end.steps : static_cast<std::uint64_t>(end.epochs));
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

/// Where the training ended. The checkpoint of the end knows more than the summary.
loop::Progress progress_of(const runfiles::SummaryLine& summary, const loop::TrainingEnd& end,
                           const std::filesystem::path& checkpoint) {
  if (!checkpoint.empty()) {
    loop::Progress progress = checkpoint::read_progress(checkpoint);
    if (progress.steps == summary.steps) return progress;
  }
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
  const bool wants_best = spec.flags.safety.save_best.value_or(false);
  const auto ends = end_differences(
      {ending_of(then), ending_of(identity), progress, spec.learning_rate.schedule, wants_best});
  for (const Difference& end : ends) {  // the monitor of a plateau may be told already
    if (std::ranges::count(rows, end.name, &Difference::name) == 0) rows.push_back(end);
  }
  return rows;
}

/// Whether a flag belongs to one start, and not to the training.
bool is_of_this_start(const std::string& flag) {
  constexpr std::string_view kFlags[] = {"resume",  "out",     "overwrite",
                                         "weights", "partial", "end-with"};
  return std::ranges::find(kFlags, flag) != std::end(kFlags);
}

/// "runs/first-2", which is not there yet.
std::string new_folder(const std::filesystem::path& run) {
  const std::string name = (run.has_filename() ? run : run.parent_path()).string();
  int number = 2;
  while (system::is_present(fmt::format("{}-{}", name, number))) ++number;
  return fmt::format("{}-{}", name, number);
}

/// "; to begin a new training ...: cputrain --lr 0.1 --weights runs/a --out runs/a-2", where a run,
/// whose or whose checkpoint's `weights` these are, cannot be gone on with. Empty where they do not
/// fit the network.
std::string train_on_advice(const Session& session, const TrainingSpec& spec,
                            const std::vector<Difference>& differences,
                            const std::filesystem::path& weights,
                            const std::filesystem::path& run) {
  if (differences.empty() || std::ranges::any_of(differences, makes_another_network)) return "";
  std::vector<std::string> words = typed_command(
      session, spec.flags, [](const std::string& flag) { return !is_of_this_start(flag); });
  words.insert(words.end(), {"--weights", weights.string(), "--out", new_folder(run)});
  return "; to begin a new training with its weights and these flags: " + command_line(words);
}

}  // namespace

std::string to_text(const Difference& difference, Compared what) {
  return fmt::format("{}: {} in the {}, {} here", printable(difference.name), difference.then,
                     what == Compared::checkpoint ? "checkpoint" : "run", difference.here);
}

std::vector<Difference> identity_differences(const nlohmann::ordered_json& then,
                                             const nlohmann::ordered_json& here, Compared what) {
  std::vector<std::string> names;
  for (const auto* object : {&here, &then}) {
    for (const auto& [name, value] : object->items()) {
      if (name == kEnd) continue;  // kEndRows has it
      if (may_differ(name, then, here, what)) continue;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  const auto unknown = [](const nlohmann::ordered_json& object, const std::string& name) {
    return object.contains(name) && object.at(name).is_null();
  };
  std::vector<Difference> rows;
  for (const std::string& name : names) {
    if (unknown(then, name) || unknown(here, name)) continue;
    const std::string there = shown(then, name.c_str()), now = shown(here, name.c_str());
    if (!are_same(there, now)) rows.push_back({name, there, now});
  }
  return rows;
}

Ending ending_of(const nlohmann::ordered_json& identity) {
  const auto end = identity.find(kEnd);
  if (end == identity.end()) fail(ExitCode::data, "it does not say what was to end the training");
  return {end_of_json(*end), end->contains(kSaveBest)};
}

bool asks_for_less(const loop::TrainingEnd& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps < progress.steps;
  return end.epochs < progress.epochs || (end.epochs == progress.epochs && progress.begun);
}

std::vector<Difference> end_differences(const Ends& ends) {
  std::vector<Difference> rows;
  for (const EndRow& row : kEndRows) {
    const std::string there = row.text(ends.then), here = row.text(ends.now);
    if (row.is_other(ends) && there != here) rows.push_back({row.name, there, here});
  }
  return rows;
}

bool is_at_its_end(const std::filesystem::path& folder, const std::filesystem::path& checkpoint,
                   const TrainingSpec& spec) {
  const auto summary =
      runfiles::summary_at_end(folder / runfiles::kMetricsName).value_or(runfiles::SummaryLine{});
  const nlohmann::ordered_json training = training_of(summary);
  const loop::TrainingEnd now = end_of(spec);
  const Ending then = training.is_null() ? Ending{now} : ending_of(training);
  loop::Progress progress = progress_of(summary, then.end, checkpoint);
  const bool begins_anew =
      training.is_null() || !then.keeps_best() || then.end.monitor != now.monitor;
  if (begins_anew) progress.patience = {};  // see take_up_best()
  return loop::is_over(now, progress);
}

void check_same_training(const Session& session, const std::filesystem::path& checkpoint,
                         const TrainingSpec& spec, nlohmann::ordered_json& identity) {
  if (!session.leads()) return;
  const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
  const auto rows = identity_differences(facts.at("training"), identity, Compared::checkpoint);
  for (const Difference& row : rows) warn(session, to_text(row, Compared::checkpoint));
  const bool other_weights = std::ranges::count(rows, kFirstWeights, &Difference::name) > 0;
  if (!rows.empty()) {
    fail(ExitCode::usage,
         "--resume: {} is of another training, see above (what follows would be neither of the "
         "two); repeat its flags (--config {} has them){}, or name another --out{}",
         checkpoint.string(), quoted((checkpoint.parent_path() / kConfigName).string()),
         other_weights ? ", leave --weights out (the checkpoint's are newer)" : "",
         train_on_advice(session, spec, rows, checkpoint, checkpoint.parent_path()));
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
  const auto summary =
      runfiles::summary_at_end(folder / runfiles::kMetricsName).value_or(runfiles::SummaryLine{});
  const nlohmann::ordered_json then = training_of(summary);
  if (then.is_null()) {
    fail(ExitCode::usage,
         "--resume auto: the finished training in {} does not say what it was (it may be another "
         "one, and nothing would be trained); name another --out, or replace it with --overwrite "
         "in place of --resume",
         folder.string());
  }
  const loop::Progress progress = progress_of(summary, ending_of(then).end, checkpoint);
  const auto rows = finished_differences(then, identity, progress, spec);
  if (rows.empty()) {
    say(session, "The training in {} is finished ({}); nothing is left to do", folder.string(),
        end_text(end_of(spec), progress));
    return say_missing_best(session, folder, spec.flags.safety);
  }
  for (const Difference& row : rows) warn(session, to_text(row, Compared::finished_run));
  fail(ExitCode::usage,
       "--resume auto: the training in {} is finished, and it is another one than this, see above "
       "(nothing would be trained); name another --out, repeat its flags (--config {} has them), "
       "or replace it with --overwrite in place of --resume{}",
       folder.string(), quoted((folder / kConfigName).string()),
       train_on_advice(session, spec, rows, folder, folder));
}

}  // namespace cputrain::training
