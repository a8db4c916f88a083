#include "training/training_end.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace cputrain::training {
namespace {

using Json = nlohmann::ordered_json;
using loop::TrainOptions;

constexpr const char *kEpochs = "epochs", *kSteps = "steps", *kSettled = "settled-steps",
                     *kTarget = "target-accuracy", *kPatience = "early-stopping",
                     *kMinDelta = "min-delta";

std::string stopping_text(const TrainOptions& end) {
  if (!end.patience) return "none";
  return end.min_delta == 0 ? fmt::format("{}", *end.patience)
                            : fmt::format("{}:{}", *end.patience, end.min_delta);
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

[[noreturn]] void not_an_end() {
  fail(ExitCode::data, "it does not say what was to end the training");
}

/// Neither a fraction, nor one that wraps.
template <class T>
T whole_of(const Json& value) {
  const std::int64_t number = value.is_number_integer() ? value.get<std::int64_t>() : -1;
  if (number < 0 || !std::in_range<T>(number)) not_an_end();
  return static_cast<T>(number);
}

/// Where --epochs and --steps end the training, and how often it is asked for settled ones.
bool have_one_length(const TrainOptions& a, const TrainOptions& b) {
  return a.steps == b.steps && a.settled_steps == b.settled_steps &&
         (a.steps || a.epochs == b.epochs);
}

bool is_exactly(const TrainOptions& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps == progress.steps;
  return end.epochs == progress.epochs && !progress.begun;
}

/// Whether the rate of every step depends on where the training ends.
bool follows_end(const optim::Schedule& schedule) {
  return std::holds_alternative<optim::CosineDecay>(schedule) ||
         std::holds_alternative<optim::PolynomialDecay>(schedule);
}

bool target_is_other(const TrainOptions& then, const TrainOptions& now) {
  if (!now.target_accuracy) return false;
  return !then.target_accuracy || *now.target_accuracy < *then.target_accuracy;
}

bool patience_is_other(const TrainOptions& then, const TrainOptions& now) {
  if (!now.patience) return false;
  return !then.patience || *now.patience < *then.patience || now.min_delta != then.min_delta;
}

}  // namespace

TrainOptions end_of(const TrainingSpec& spec) {
  const auto& stopping = spec.flags.safety.early_stopping;
  TrainOptions end;
  end.epochs = spec.epochs;
  end.steps = spec.flags.steps;
  end.settled_steps = spec.flags.settled_steps.value_or(0);
  end.target_accuracy = spec.flags.target_accuracy;
  if (stopping) {
    end.patience = stopping->patience;
    end.min_delta = stopping->min_delta;
  }
  return end;
}

Json to_json(const TrainOptions& end) {
  Json json{{kEpochs, end.epochs}};
  if (end.steps) json[kSteps] = *end.steps;
  if (end.settled_steps > 0) json[kSettled] = end.settled_steps;
  if (end.target_accuracy) json[kTarget] = *end.target_accuracy;
  if (end.patience) {
    json[kPatience] = *end.patience;
    json[kMinDelta] = end.min_delta;
  }
  return json;
}

TrainOptions end_of_json(const Json& json) {
  try {
    TrainOptions end;
    end.epochs = whole_of<int>(json.at(kEpochs));
    if (json.contains(kSteps)) end.steps = whole_of<std::uint64_t>(json.at(kSteps));
    if (json.contains(kSettled)) end.settled_steps = whole_of<std::uint64_t>(json.at(kSettled));
    if (json.contains(kTarget)) end.target_accuracy = json.at(kTarget).get<double>();
    if (json.contains(kPatience)) end.patience = whole_of<int>(json.at(kPatience));
    if (json.contains(kMinDelta)) end.min_delta = json.at(kMinDelta).get<double>();
    return end;
  } catch (const nlohmann::json::exception&) {
    not_an_end();
  }
}

bool asks_for_less(const TrainOptions& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps < progress.steps;
  return end.epochs < progress.epochs || (end.epochs == progress.epochs && progress.begun);
}

std::vector<std::string> end_differences(const TrainOptions& then, const TrainOptions& now,
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
