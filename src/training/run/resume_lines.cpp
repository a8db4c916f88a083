#include "training/run/resume_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint/state_file.h"
#include "core/text.h"
#include "training/asked_end.h"
#include "training/run/run_weights.h"
#include "training/run/training_identity.h"

namespace cputrain::training {
namespace {

void say_weights(const Session& session, const std::string& flag,
                 const nlohmann::ordered_json& training) {
  const auto began = training.find(kFirstWeights);
  const std::string first =
      began != training.end() && began->is_string() ? printable(began->get<std::string>()) : "";
  if (flag.empty()) {
    if (!first.empty()) {
      say(session, fmt::format("The training began with the weights of {}", first));
    }
  } else if (weights_are_there(flag)) {
    say(session, fmt::format("--weights {}: the training began with them; it goes on with "
                             "those of the checkpoint, which are newer",
                             flag));
  } else {  // it may be another name than that of the first weights
    say(session, fmt::format("--weights {} is not there; the training began with the weights of "
                             "{}, and goes on with those of the checkpoint, which are newer",
                             flag, first));
  }
}

void say_end(const Session& session, const loop::TrainingEnd& now, const loop::Progress& progress) {
  const bool over = progress.begun ? loop::steps_are_made(now, progress)  // else it is completed
                                   : loop::is_over(now, progress);
  if (!over) return;
  say(session, fmt::format("The checkpoint is at the end that is asked for: no step follows "
                           "(a larger --{} goes on)",
                           now.steps ? "steps" : "epochs"));
}

/// The rate of the step that is next, in a training that ends there.
double next_rate(const Training& training, const loop::TrainingEnd& end,
                 const loop::Progress& progress) {
  const data::BatchPlan& plan = training.batches().train;
  optim::LearningRate rate(training.plan().spec.learning_rate,
                           data::training_epochs(plan, end.epochs, end.steps));
  rate.set_plateau(progress.plateau);
  const std::size_t made = progress.begun ? progress.begun->steps : 0;
  const std::size_t steps = plan.in_epoch(progress.epochs).steps();
  return rate.at({progress.epochs, made, std::max(steps, made), progress.steps});
}

std::string end_text(const loop::TrainingEnd& end) {
  return "of " + (end.steps ? counted(*end.steps, "step") : counted(end.epochs, "epoch"));
}

/// A schedule that leads to the end of the training moves with it.
void say_rate(const Training& training, const loop::TrainingEnd& then, const loop::TrainingEnd& now,
              const loop::Progress& progress) {
  constexpr double kNotable = 0.01;  // part of the rate
  const double planned = next_rate(training, then, progress),
               next = next_rate(training, now, progress);
  if (std::abs(next - planned) <= kNotable * std::max(next, planned)) return;
  warn(training.session(),
       fmt::format("--schedule {} ends with the training, which is now {} and was {}: the "
                   "learning rate goes from {:.3g} to {:.3g}, where {:.3g} was planned (the "
                   "loss may rise for a while); for one curve begin anew in another --out",
                   optim::schedule_text(training.plan().spec.learning_rate.schedule), end_text(now),
                   end_text(then), progress.last_rate, next, planned));
}

}  // namespace

void say_what_changes(const Training& training, const std::filesystem::path& checkpoint,
                      const loop::Progress& progress) {
  if (!training.session().leads()) return;
  const nlohmann::ordered_json then = checkpoint::read_facts(checkpoint).at("training");
  say_weights(training.session(), training.plan().spec.flags.weights, then);
  const loop::TrainingEnd now = end_of(training.plan().spec);
  say_end(training.session(), now, progress);
  say_rate(training, end_of_json(then.at(kEnd)), now, progress);
}

}  // namespace cputrain::training
