#include "training/asked_end.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "core/json_fields.h"

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

}  // namespace cputrain::training
