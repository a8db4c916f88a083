#include "cli/commands/idle_in_training.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

#include "core/overloaded.h"
#include "core/text.h"
#include "system/limits/process_limits.h"
#include "training/plan/batch_plans.h"
#include "training/plan/compiled_training.h"

namespace cputrain::commands {
namespace {

std::string when(bool idle, const char* reason) { return idle ? reason : ""; }

const training::TrainingSpec& spec_of(const training::Training& training) {
  return training.plan().spec;
}

bool is_alone(const training::Training& training) {
  return training.session().communicator->size() == 1;
}

double epochs_of(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  return data::training_epochs(training.batches().train, spec.epochs, spec.flags.steps);
}

std::string in_so_many_epochs(const training::Training& training) {
  const double epochs = epochs_of(training);
  return fmt::format("in a training of {:.4g} {}", epochs, plural("epoch", epochs));
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
bool has_buckets(const training::Training& training) {
  if (is_alone(training) || spec_of(training).flags.reproducible) return false;
  using Scheme = comm::AllreduceChoice::Scheme;
  const Scheme scheme = comm::parse_allreduce(training.compiled().allreduce).scheme;
  if (scheme != Scheme::slices) return scheme == Scheme::replicas;
  return training::overlap_of(training.session()) != exchange::Overlap::none;
}

std::string reason_of_buckets(const training::Training& training) {
  if (has_buckets(training)) return "";
  if (is_alone(training)) return "with one rank, whose gradients stay where they are";
  if (spec_of(training).flags.reproducible) return "with --reproducible, which sums chunk by chunk";
  return training.session().nodes.nodes() == 1
             ? "on one node, whose ranks sum whole gradients over shared memory"
             : "where gradients do not travel during backward";
}

std::string reason_of_scaling(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  if (spec.learning_rate.scale == optim::RateScale::none || spec.learning_rate.n != 1.0) return "";
  return spec.flags.base_batch
             ? "for steps of as many images as --base-batch"
             : "with one rank (it multiplies by the ranks, or with --base-batch N "
               "by batch / N)";
}

std::string reason_of_warmup(const training::Training& training) {
  const optim::LearningRateOptions& rate = spec_of(training).learning_rate;
  return when(
      rate.warmup_epochs > 0 && rate.n && *rate.n <= 1.0,
      "here: it begins at rate / n, and n is 1 or less (without --lr-scale and --base-batch it "
      "begins at 0)");
}

std::string reason_of_schedule(const training::Training& training) {
  const double change = first_change(spec_of(training).learning_rate.schedule);
  if (change == 0 || change < epochs_of(training)) return "";
  return fmt::format("{} (the rate would change after {:.4g})", in_so_many_epochs(training),
                     change);
}

std::string reason_of_growth(const training::Training& training) {
  const auto& growth = spec_of(training).plan.growth;
  return growth.empty() || growth.front().epochs < epochs_of(training)
             ? ""
             : in_so_many_epochs(training);
}

std::string reason_of_rare_evaluation(const training::Training& training) {
  if (spec_of(training).flags.eval_every == 1) return "";
  if (training.source().validation.empty()) return "without images of validation";
  return epochs_of(training) <= 1 ? in_so_many_epochs(training) : "";
}

std::string reason_of_monitor(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  const bool is_followed = spec.flags.safety.keeps_best() ||
                           std::holds_alternative<optim::Plateau>(spec.learning_rate.schedule);
  return when(!is_followed,
              "but the best epoch that is named, without --early-stopping, --save-best or "
              "--schedule plateau, which follow it");
}

std::string reason_of_backbone_rate(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  return when(spec.flags.backbone_lr == spec.learning_rate.base, "beside an --lr that is the same");
}

std::string reason_of_timeline_steps(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  const std::uint64_t steps =
      training::all_steps(training.batches().train, spec.epochs, spec.flags.steps);
  if (spec.flags.timeline_steps.first <= steps) return "";
  return "in a training of " + counted(steps, "step");
}

bool is_packed(const training::Training& training) {
  return training.source().dataset->ready_form().has_value();
}

constexpr const char* kPacked = "for a packed file, whose images are read as they are needed";

/// As load() is asked in training_run.cpp.
std::string reason_of_decoding(const training::Training& training) {
  if (is_packed(training)) return kPacked;
  if (spec_of(training).flags.decode == training::Decoding::first) return "";
  if (training.compiled().images_on_device)
    return "where images stay on a device: they are decoded first";
  return when(system::limits_addresses(),
              "under 'ulimit -v' or '-d': images are decoded first, since threads beside the steps "
              "need addresses of their own");
}

/// Why a flag has no effect; empty where it has one.
struct RowInJob {
  std::string_view flag;
  std::string (*reason)(const training::Training&);
};

constexpr RowInJob kRowsInJob[] = {
    {"eval-every", reason_of_rare_evaluation},
    {"monitor", reason_of_monitor},
    {"backbone-lr", reason_of_backbone_rate},
    {"timeline-steps", reason_of_timeline_steps},
    {"bucket-mb", reason_of_buckets},
    {"decode", reason_of_decoding},
    {"cache",
     [](const training::Training& training) { return when(is_packed(training), kPacked); }},
    {"lr-scale", reason_of_scaling},
    {"warmup-epochs", reason_of_warmup},
    {"schedule", reason_of_schedule},
    {"batch-growth", reason_of_growth},
    {"momentum-correction",
     [](const training::Training& training) {
       return when(rate_is_constant(spec_of(training)),
                   "while the rate stays the same; --schedule and --warmup-epochs change it");
     }},
    {"allreduce",
     [](const training::Training& training) {
       return when(
           is_alone(training) && spec_of(training).flags.allreduce != comm::AllreduceChoice{},
           "with one rank, which has nothing to add up");
     }},
    {"check-replicas",
     [](const training::Training& training) {
       return when(is_alone(training) && spec_of(training).flags.safety.check_replicas > 0,
                   "with one rank, which has nothing to compare");
     }},
    {"sync-bn",
     [](const training::Training& training) {
       const training::TrainingFlags& flags = spec_of(training).flags;
       return when(is_alone(training) && !flags.micro_batch && flags.batch_growth.empty(),
                   "with one rank, whose statistics are of all images of a batch anyway");
     }},
    {"sharding",
     [](const training::Training& training) {
       return when(is_alone(training) && spec_of(training).plan.sharding == data::Sharding::strided,
                   "with one rank, which has all images");
     }},
    {"validation-split",
     [](const training::Training& training) {
       return when(training.source().own_validation,
                   "for data with a part of its own for validation");
     }},
};

}  // namespace

std::string why_idle_in(const training::Training& training, const std::string& flag) {
  for (const RowInJob& row : kRowsInJob) {
    if (row.flag == flag) return row.reason(training);
  }
  return "";
}

}  // namespace cputrain::commands
