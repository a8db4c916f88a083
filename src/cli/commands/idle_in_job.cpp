#include "cli/commands/idle_in_job.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

#include "core/overloaded.h"
#include "training/batch_plans.h"
#include "training/training_program.h"

namespace cputrain::commands {
namespace {

std::string when(bool idle, const char* reason) { return idle ? reason : ""; }

const training::TrainingSpec& spec_of(const training::TrainingJob& job) { return job.plan().spec; }

bool is_alone(const training::TrainingJob& job) { return job.session().communicator->size() == 1; }

double epochs_of(const training::TrainingJob& job) {
  const training::TrainingSpec& spec = spec_of(job);
  return data::training_epochs(job.batches().train, spec.epochs, spec.flags.steps);
}

std::string in_so_many_epochs(const training::TrainingJob& job) {
  const double epochs = epochs_of(job);
  return fmt::format("in a training of {:.4g} epoch{}", epochs, epochs == 1 ? "" : "s");
}

/// The epoch after which a schedule changes the rate for the first time.
double first_change(const optim::Schedule& schedule) {
  return std::visit(Overloaded{[](const optim::StepDecay& s) { return s.epochs; },
                               [](const optim::PiecewiseRate& s) { return s.pieces.front().epoch; },
                               [](const optim::Plateau& s) { return s.patience + 1.0; },
                               [](const auto&) { return 0.0; }},
                    schedule);
}

bool rate_is_constant(const training::TrainingSpec& spec) {
  return spec.learning_rate.warmup_epochs == 0 &&
         std::holds_alternative<optim::ConstantRate>(spec.learning_rate.schedule);
}

/// Whether gradients travel in pieces while others are still computed.
bool has_buckets(const training::TrainingJob& job) {
  if (is_alone(job) || spec_of(job).flags.reproducible) return false;
  using Scheme = comm::AllreduceChoice::Scheme;
  const Scheme scheme = comm::parse_allreduce(job.compiled().allreduce).scheme;
  if (scheme != Scheme::slices) return scheme == Scheme::replicas;
  return training::overlap_of(job.session()) != exchange::Overlap::none;
}

std::string reason_of_buckets(const training::TrainingJob& job) {
  if (has_buckets(job)) return "";
  if (is_alone(job)) return "with one rank, whose gradients stay where they are";
  if (spec_of(job).flags.reproducible) return "with --reproducible, which sums chunk by chunk";
  return job.session().nodes.nodes() == 1
             ? "on one node, whose ranks sum whole gradients over shared memory"
             : "where gradients do not travel during backward";
}

std::string reason_of_scaling(const training::TrainingJob& job) {
  const training::TrainingSpec& spec = spec_of(job);
  if (spec.learning_rate.scale == optim::RateScale::none || spec.learning_rate.n != 1.0) return "";
  return spec.flags.base_batch
             ? "for steps of as many images as --base-batch"
             : "with one rank (it multiplies by the ranks, or with --base-batch N "
               "by batch / N)";
}

std::string reason_of_warmup(const training::TrainingJob& job) {
  const optim::LearningRateOptions& rate = spec_of(job).learning_rate;
  return when(
      rate.warmup_epochs > 0 && rate.n && *rate.n <= 1.0,
      "here: it begins at rate / n, and n is 1 or less (without --lr-scale and --base-batch it "
      "begins at 0)");
}

std::string reason_of_schedule(const training::TrainingJob& job) {
  const double change = first_change(spec_of(job).learning_rate.schedule);
  if (change == 0 || change < epochs_of(job)) return "";
  return fmt::format("{} (the rate would change after {:.4g})", in_so_many_epochs(job), change);
}

std::string reason_of_growth(const training::TrainingJob& job) {
  const auto& growth = spec_of(job).plan.growth;
  return growth.empty() || growth.front().epochs < epochs_of(job) ? "" : in_so_many_epochs(job);
}

std::string reason_of_timeline_steps(const training::TrainingJob& job) {
  const training::TrainingSpec& spec = spec_of(job);
  const std::uint64_t steps =
      training::all_steps(job.batches().train, spec.epochs, spec.flags.steps);
  if (spec.flags.timeline_steps.first <= steps) return "";
  return fmt::format("in a training of {} steps", steps);
}

/// Why a flag has no effect; empty where it has one.
struct RowInJob {
  std::string_view flag;
  std::string (*reason)(const training::TrainingJob&);
};

constexpr RowInJob kRowsInJob[] = {
    {"timeline-steps", reason_of_timeline_steps},
    {"bucket-mb", reason_of_buckets},
    {"lr-scale", reason_of_scaling},
    {"warmup-epochs", reason_of_warmup},
    {"schedule", reason_of_schedule},
    {"batch-growth", reason_of_growth},
    {"momentum-correction",
     [](const training::TrainingJob& job) {
       return when(rate_is_constant(spec_of(job)),
                   "while the rate stays the same; --schedule and --warmup-epochs change it");
     }},
    {"allreduce",
     [](const training::TrainingJob& job) {
       return when(is_alone(job) && spec_of(job).flags.allreduce != comm::AllreduceChoice{},
                   "with one rank, which has nothing to add up");
     }},
    {"check-replicas",
     [](const training::TrainingJob& job) {
       return when(is_alone(job) && spec_of(job).flags.safety.check_replicas > 0,
                   "with one rank, which has nothing to compare");
     }},
    {"sync-bn",
     [](const training::TrainingJob& job) {
       const training::TrainingFlags& flags = spec_of(job).flags;
       return when(is_alone(job) && !flags.micro_batch && flags.batch_growth.empty(),
                   "with one rank, whose statistics are of all images of a batch anyway");
     }},
    {"sharding",
     [](const training::TrainingJob& job) {
       return when(is_alone(job) && spec_of(job).plan.sharding == data::Sharding::strided,
                   "with one rank, which has all images");
     }},
    {"validation-split",
     [](const training::TrainingJob& job) {
       return when(job.source().own_validation, "for data with a part of its own for validation");
     }},
};

}  // namespace

std::string why_idle_in_job(const training::TrainingJob& job, const std::string& flag) {
  for (const RowInJob& row : kRowsInJob) {
    if (row.flag == flag) return row.reason(job);
  }
  return "";
}

}  // namespace cputrain::commands
