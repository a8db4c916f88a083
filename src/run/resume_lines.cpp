#include "run/resume_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "job/training_end.h"
#include "job/training_identity.h"

namespace cputrain::run {
namespace {

void say_weights(const job::Session& session, const std::string& flag,
                 const nlohmann::ordered_json& training) {
  const auto began = training.find(job::kFirstWeights);
  if (!flag.empty()) {
    job::say(session, fmt::format("--weights {}: the training began with them; it goes on with "
                                  "those of the checkpoint, which are newer",
                                  flag));
  } else if (began != training.end() && began->is_string()) {
    job::say(session, fmt::format("The training began with the weights of {}",
                                  printable(began->get<std::string>())));
  }
}

void say_end(const job::Session& session, const train::TrainOptions& now,
             const train::Progress& progress) {
  const bool over = progress.begun ? train::steps_are_made(now, progress)  // else it is completed
                                   : train::is_over(now, progress);
  if (!over) return;
  job::say(session, fmt::format("The checkpoint is at the end that is asked for: no step follows "
                                "(a larger --{} goes on)",
                                now.steps ? "steps" : "epochs"));
}

/// The rate of the step that is next, in a training that ends there.
double next_rate(const job::TrainingJob& job, const train::TrainOptions& end,
                 const train::Progress& progress) {
  const data::BatchPlan& plan = job.batches().train;
  optim::LearningRate rate(job.plan().spec.learning_rate,
                           data::training_epochs(plan, end.epochs, end.steps));
  rate.set_plateau(progress.plateau);
  const std::size_t made = progress.begun ? progress.begun->steps : 0;
  const std::size_t steps = plan.in_epoch(progress.epochs).steps();
  return rate.at({progress.epochs, made, std::max(steps, made), progress.steps});
}

std::string end_text(const train::TrainOptions& end) {
  return end.steps ? fmt::format("of {} steps", *end.steps)
                   : fmt::format("of {} epochs", end.epochs);
}

/// A schedule that leads to the end of the training moves with it.
void say_rate(const job::TrainingJob& job, const train::TrainOptions& then,
              const train::TrainOptions& now, const train::Progress& progress) {
  constexpr double kNotable = 0.01;  // part of the rate
  const double planned = next_rate(job, then, progress), next = next_rate(job, now, progress);
  if (std::abs(next - planned) <= kNotable * std::max(next, planned)) return;
  job::warn(job.session(),
            fmt::format("--schedule {} ends with the training, which is now {} and was {}: the "
                        "learning rate goes from {:.3g} to {:.3g}, where {:.3g} was planned (the "
                        "loss may rise for a while); for one curve begin anew in another --out",
                        optim::schedule_text(job.plan().spec.learning_rate.schedule), end_text(now),
                        end_text(then), progress.last_rate, next, planned));
}

}  // namespace

void say_what_changes(const job::TrainingJob& job, const std::filesystem::path& checkpoint,
                      const train::Progress& progress) {
  if (!job.session().leads()) return;
  const nlohmann::ordered_json training = job::read_facts(checkpoint).at("training");
  say_weights(job.session(), job.plan().spec.flags.weights, training);
  const train::TrainOptions now = job::end_of(job.plan().spec);
  say_end(job.session(), now, progress);
  say_rate(job, job::end_of_json(training.at(job::kEnd)), now, progress);
}

}  // namespace cputrain::run
