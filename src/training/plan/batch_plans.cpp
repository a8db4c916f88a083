#include "training/plan/batch_plans.h"

#include <fmt/format.h>

#include <set>

#include "core/error.h"

namespace cputrain::training {
namespace {

/// Why an epoch may have no step at all, and what to do.
std::string no_step_reason(const TrainingSpec& spec) {
  if (!spec.plan.drop_last) return "--sharding generator stops after 1/ranks of them";
  if (spec.flags.drop_last) return "--drop-last leaves out what fills no whole step";
  return fmt::format("{}'s recipe leaves out what fills no whole step, --no-drop-last keeps it",
                     spec.model->name);
}

}  // namespace

void check_steps(const TrainingSpec& spec, const data::BatchPlan& plan) {
  std::vector<int> epochs{0};
  for (const data::BatchGrowth& growth : spec.plan.growth) {
    if (spec.flags.steps || growth.epochs < spec.epochs) epochs.push_back(growth.epochs);
  }
  for (const int epoch : epochs) {
    const data::BatchPlan of_epoch = plan.in_epoch(epoch);
    if (of_epoch.steps() > 0) continue;
    fail(
        ExitCode::usage,
        fmt::format("steps of {} images leave none of the {} training images in epoch {} ({}); use "
                    "a smaller --batch",
                    of_epoch.global_batch() * static_cast<std::size_t>(spec.plan.accumulate),
                    plan.samples(), epoch + 1, no_step_reason(spec)));
  }
}

std::vector<int> BatchPlans::sizes() const {
  std::set<int> sizes;
  for (const int size : train.sizes()) sizes.insert(size);
  for (const int size : validation.sizes()) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

BatchPlans cut_batches(const Session& session, const TrainingPlan& plan, std::size_t train_images,
                       std::size_t validation_images) {
  const int rank = session.communicator->rank(), ranks = session.communicator->size();
  const int at_once = plan.micro_batch;
  // A program has memory for the largest number of images; on a device that is what is short.
  const int usual = session.device.chosen()
                        ? plan.usual_images
                        : std::max(plan.usual_images, micro_batch_size(plan.spec.flags, session));
  const int evaluated_at_once = plan.chunks ? at_once : std::min(at_once, usual);
  const std::size_t evaluated =
      static_cast<std::size_t>(evaluated_at_once) * static_cast<std::size_t>(ranks);
  BatchPlans batches{
      data::BatchPlan(train_images, plan.spec.batch, at_once, rank, ranks, plan.spec.plan),
      data::BatchPlan(validation_images, evaluated, evaluated_at_once, rank, ranks,
                      {.sharding = plan.chunks ? data::Sharding::dealt : data::Sharding::slices})};
  check_steps(plan.spec, batches.train);
  return batches;
}

std::uint64_t all_steps(const data::BatchPlan& plan, int epochs,
                        std::optional<std::uint64_t> steps) {
  if (steps) return *steps;
  std::uint64_t count = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) count += plan.in_epoch(epoch).steps();
  return count;
}

std::vector<std::size_t> images_by_rank(const data::BatchPlan& plan) {
  std::vector<std::size_t> images;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const data::BatchPlan of_rank(plan.samples(), plan.global_batch(), plan.micro_batch(), rank,
                                  plan.ranks(), plan.options());
    std::size_t count = 0;
    for (int k = 0; k < of_rank.micro_batches(0); ++k) count += of_rank.piece(0, k).size();
    images.push_back(count);
  }
  return images;
}

}  // namespace cputrain::training
