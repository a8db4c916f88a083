#include "training/asked_end.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/error.h"
#include "core/json_fields.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

using loop::TrainingEnd;

constexpr const char* kPatience = "early-stopping";

void fields_of_end(JsonMembers& f, TrainingEnd& end) {
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr std::int64_t kMostSteps = std::numeric_limits<std::int64_t>::max();
  f.need("epochs", end.epochs, 0, kMost);
  f.rare("steps", end.steps, 0, kMostSteps);
  f.rare("settled-steps", end.settled_steps, 0, kMostSteps);
  f.rare("target-accuracy", end.target_accuracy, -kMostCounted, kMostCounted);
  f.rare(kPatience, end.patience, 0, kMost);
  if (end.patience) f.may("min-delta", end.min_delta, -kMostCounted, kMostCounted);
  // The loss, which is the default, is left out.
  const bool has_monitor = f.file() ? f.file()->has(kMonitor) : end.monitor != optim::Monitor::loss;
  if (has_monitor) f.word(kMonitor, end.monitor, names(optim::Monitor{}));
}

/// A plateau that the model's recipe has anyway is no more asked for than without the flag, which
/// the config.json of a run has: that gets a warning.
bool asks_for_plateau(const TrainingFlags& flags) {
  return flags.schedule && std::holds_alternative<optim::Plateau>(*flags.schedule) &&
         *flags.schedule != zoo::find_model(flags.model)->recipe.schedule;
}

/// Why no image validates, and what to do.
std::pair<std::string, const char*> not_looked_at() {
  return {"--limit-val 0 looks at none", "leave out --limit-val 0"};
}

std::pair<std::string, const char*> absence_of(const TrainingSpec& spec,
                                               const data::DataSource& source) {
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

/// Error(usage) for the first flag that watches it.
void refuse_watcher(const TrainingFlags& flags, const std::string& why, const char* remedy) {
  const std::string_view figure = word_of(flags.safety.monitor);
  const auto refuse = [&](const std::string& flag, std::string_view watches, const char* idle) {
    fail(ExitCode::usage,
         "{0} watches the {1} of validation, which has no image ({2}; {3}); {4}, or leave {0} out",
         flag, watches, why, idle, remedy);
  };
  if (flags.safety.early_stopping) {
    refuse("--early-stopping", figure, "nothing would end the training early");
  }
  if (flags.safety.save_best.value_or(false)) {
    refuse("--save-best", figure, "no weights would be the best");
  }
  if (asks_for_plateau(flags)) {
    refuse("--schedule " + optim::schedule_text(*flags.schedule), figure,
           "the rate would never fall");
  }
  if (flags.target_accuracy) {
    refuse(fmt::format("--target-accuracy {:g}", *flags.target_accuracy), "accuracy",
           "it would never be reached");
  }
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

bool keeps_best(const nlohmann::ordered_json& identity) {
  if (!identity.is_object()) return false;
  const auto end = identity.find(kEnd);
  return end != identity.end() && end->is_object() &&
         (end->contains(kSaveBest) || end->contains(kPatience));
}

void check_watchers(const TrainingFlags& flags) {
  if (flags.limit_val != 0u) return;
  const auto [why, remedy] = not_looked_at();
  refuse_watcher(flags, why, remedy);
}

void check_watchers(const TrainingSpec& spec, const data::DataSource& source) {
  if (!source.validation.empty()) return;
  const auto [why, remedy] = absence_of(spec, source);
  refuse_watcher(spec.flags, why, remedy);
}

void check_watchers(const Session& session, const TrainingSpec& spec,
                    const data::DataSource& source) {
  check_watchers(spec, source);
  const optim::Schedule& schedule = spec.learning_rate.schedule;
  if (!source.validation.empty() || !spec.flags.task.advised) return;
  if (!std::holds_alternative<optim::Plateau>(schedule)) return;
  const auto [why, remedy] = absence_of(spec, source);
  warn(session,
       "the schedule of {}'s recipe, {}, watches the {} of validation, which has no image ({}; the "
       "rate never falls); {}, or name another --schedule",
       spec.model->name, optim::schedule_text(schedule), word_of(spec.flags.safety.monitor), why,
       remedy);
}

}  // namespace cputrain::training
