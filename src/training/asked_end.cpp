#include "training/asked_end.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <variant>

#include "core/error.h"
#include "core/json_fields.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

using loop::TrainingEnd;

constexpr const char *kEpochs = "epochs", *kSteps = "steps", *kSettled = "settled-steps",
                     *kTarget = "target-accuracy", *kPatience = "early-stopping";

void fields_of_end(JsonMembers& f, TrainingEnd& end) {
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr std::int64_t kMostSteps = std::numeric_limits<std::int64_t>::max();
  f.need(kEpochs, end.epochs, 0, kMost);
  f.rare(kSteps, end.steps, 0, kMostSteps);
  f.rare(kSettled, end.settled_steps, 0, kMostSteps);
  f.rare(kTarget, end.target_accuracy, -kMostCounted, kMostCounted);
  f.rare(kPatience, end.patience, 0, kMost);
  if (end.patience) f.may("min-delta", end.min_delta, -kMostCounted, kMostCounted);
  // The loss, which is the default, is left out.
  const bool has_monitor = f.file() ? f.file()->has(kMonitor) : end.monitor != optim::Monitor::loss;
  if (has_monitor) f.word(kMonitor, end.monitor, names(optim::Monitor{}));
}

std::string stopping_text(const TrainingEnd& end) {
  if (!end.patience) return "none";
  return end.min_delta == 0 ? fmt::format("{}", *end.patience)
                            : fmt::format("{}:{}", *end.patience, end.min_delta);
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

/// Where --epochs and --steps end the training, and how often it is asked for settled ones.
bool have_one_length(const TrainingEnd& a, const TrainingEnd& b) {
  return a.steps == b.steps && a.settled_steps == b.settled_steps &&
         (a.steps || a.epochs == b.epochs);
}

bool is_exactly(const TrainingEnd& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps == progress.steps;
  return end.epochs == progress.epochs && !progress.begun;
}

/// Whether the rate of every step depends on where the training ends.
bool follows_end(const optim::Schedule& schedule) {
  return std::holds_alternative<optim::CosineDecay>(schedule) ||
         std::holds_alternative<optim::PolynomialDecay>(schedule);
}

bool target_is_other(const TrainingEnd& then, const TrainingEnd& now) {
  if (!now.target_accuracy) return false;
  return !then.target_accuracy || *now.target_accuracy < *then.target_accuracy;
}

bool patience_is_other(const TrainingEnd& then, const TrainingEnd& now) {
  if (!now.patience) return false;
  return !then.patience || *now.patience < *then.patience || now.min_delta != then.min_delta;
}

struct Watcher {
  std::string flag;
  std::string_view watches;  ///< a figure of validation
  const char* idle;          ///< what becomes of it without validation
};

/// A plateau that the model's recipe has anyway is no more asked for than without the flag, which
/// the config.json of a run has: that gets a warning.
bool asks_for_plateau(const TrainingFlags& flags) {
  return flags.schedule && std::holds_alternative<optim::Plateau>(*flags.schedule) &&
         *flags.schedule != zoo::find_model(flags.model)->recipe.schedule;
}

/// The first that a flag asks for.
std::optional<Watcher> watcher_of(const TrainingFlags& flags) {
  const std::string_view figure = word_of(flags.safety.monitor);
  if (flags.safety.early_stopping) {
    return Watcher{"--early-stopping", figure, "nothing would end the training early"};
  }
  if (flags.safety.save_best) return Watcher{"--save-best", figure, "no weights would be the best"};
  if (asks_for_plateau(flags)) {
    return Watcher{"--schedule " + optim::schedule_text(*flags.schedule), figure,
                   "the rate would never fall"};
  }
  if (flags.target_accuracy) {
    return Watcher{fmt::format("--target-accuracy {:g}", *flags.target_accuracy), "accuracy",
                   "it would never be reached"};
  }
  return {};
}

/// Why no image validates, and what to do.
struct Absence {
  std::string why;
  const char* remedy;
};

Absence not_looked_at() { return {"--limit-val 0 looks at none", "leave out --limit-val 0"}; }

Absence absence_of(const TrainingSpec& spec, const data::DataSource& source) {
  if (spec.flags.limit_val == 0u) return not_looked_at();
  if (source.own_validation) {
    return {"the data's own part for it has none", "add images to that part"};
  }
  if (spec.flags.validation_share() == 0) {
    return {"--validation-split 0 keeps none", "keep some with --validation-split 0.1"};
  }
  return {fmt::format("--validation-split {:g} of {} images in {} classes comes to none",
                      spec.flags.validation_share(), source.train.size(),
                      source.dataset->classes().size()),
          "use a larger --validation-split, or more images"};
}

/// Error(usage) where a flag watches it.
void refuse_watcher(const TrainingFlags& flags, const Absence& absence) {
  const auto watcher = watcher_of(flags);
  if (!watcher) return;
  fail(ExitCode::usage,
       fmt::format("{0} watches the {1} of validation, which has no image ({2}; {3}); {4}, or "
                   "leave {0} out",
                   watcher->flag, watcher->watches, absence.why, watcher->idle, absence.remedy));
}

}  // namespace

TrainingEnd end_of(const TrainingSpec& spec) {
  const auto& stopping = spec.flags.safety.early_stopping;
  TrainingEnd end;
  end.epochs = spec.epochs;
  end.steps = spec.flags.steps;
  end.settled_steps = spec.flags.settled_steps.value_or(0);
  end.target_accuracy = spec.flags.target_accuracy;
  end.monitor = spec.flags.safety.monitor;
  if (stopping) {
    end.patience = stopping->patience;
    end.min_delta = stopping->min_delta;
  }
  return end;
}

nlohmann::ordered_json to_json(const TrainingEnd& end) { return json_of(end, fields_of_end); }

TrainingEnd end_of_json(const nlohmann::ordered_json& end) {
  const nlohmann::json json = end;
  try {
    return value_of<TrainingEnd>(JsonFields(json, "", ""), fields_of_end);
  } catch (const Error&) {
    fail(ExitCode::data, "it does not say what was to end the training");
  }
}

bool asks_for_less(const TrainingEnd& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps < progress.steps;
  return end.epochs < progress.epochs || (end.epochs == progress.epochs && progress.begun);
}

std::vector<std::string> end_differences(const TrainingEnd& then, const TrainingEnd& now,
                                         const loop::Progress& progress,
                                         const optim::Schedule& schedule) {
  std::vector<std::string> rows;
  const auto compare = [&](const char* name, const std::string& there, const std::string& here) {
    if (there != here) rows.push_back(fmt::format("{}: {} in the run, {} here", name, there, here));
  };
  const bool same_place = !asks_for_less(now, progress) &&
                          (is_exactly(now, progress) || !loop::steps_are_made(now, progress));
  if (!have_one_length(then, now) && (!same_place || follows_end(schedule))) {
    compare(kEpochs, fmt::format("{}", then.epochs), fmt::format("{}", now.epochs));
    compare(kSteps, text_of(then.steps), text_of(now.steps));
    compare(kSettled, fmt::format("{}", then.settled_steps), fmt::format("{}", now.settled_steps));
  }
  if (target_is_other(then, now)) {
    compare(kTarget, text_of(then.target_accuracy), text_of(now.target_accuracy));
  }
  if (patience_is_other(then, now)) compare(kPatience, stopping_text(then), stopping_text(now));
  return rows;
}

void check_watchers(const TrainingFlags& flags) {
  if (flags.limit_val == 0u) refuse_watcher(flags, not_looked_at());
}

void check_watchers(const TrainingSpec& spec, const data::DataSource& source) {
  if (source.validation.empty()) refuse_watcher(spec.flags, absence_of(spec, source));
}

std::string recipe_watcher_warning(const TrainingSpec& spec, const data::DataSource& source) {
  const optim::Schedule& schedule = spec.learning_rate.schedule;
  if (!source.validation.empty() || !std::holds_alternative<optim::Plateau>(schedule)) return {};
  const Absence absence = absence_of(spec, source);
  return fmt::format(
      "the schedule of {}'s recipe, {}, watches the {} of validation, which has no image ({}; "
      "the rate never falls); {}, or name another --schedule",
      spec.model->name, optim::schedule_text(schedule), word_of(spec.flags.safety.monitor),
      absence.why, absence.remedy);
}

}  // namespace cputrain::training
