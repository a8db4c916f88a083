#include "cli/flags/idle_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "core/overloaded.h"
#include "data/data_spec.h"
#include "scaling/cells/cells.h"
#include "training/batch_plans.h"
#include "training/training_program.h"

namespace cputrain::cli {
namespace {

/// Why a flag that was given has no effect; empty where it has one.
using Reason = std::string (*)(const Config&);
using ReasonInJob = std::string (*)(const training::TrainingJob&);

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
  if (spec_of(job).flags.reproducible) return "with --reproducible, which sums leaf by leaf";
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

std::string reason_of_exif(const Config& config) {
  const std::string word = data::parse_data_spec(config.data_or_synthetic()).word;
  return when(word == "synthetic" || word.starts_with("cifar") || word == "idx",
              "for this data, which has no photographs with an EXIF orientation");
}

std::string reason_without_checkpoints(const Config& config) {
  return when(!config.safety.takes_checkpoints(),
              "without checkpoints, which --checkpoint-every 0 turns off");
}

/// Several in a sweep.
std::vector<std::string> backends_of(const Config& config) {
  if (config.command == "sweep") return config.sweep.grid.backends;
  return {config.backend};
}

std::string reason_without_device(const Config& config) {
  return when(std::ranges::none_of(backends_of(config), cells::is_device),
              "for a --backend that computes on no device");
}

std::string reason_of_data_command(const Config&) {
  return "in this command, which computes nothing";
}

/// What follows from flags alone. Commands between commas.
struct Row {
  std::string_view commands, flag;
  Reason reason;
};

constexpr std::string_view kTrains = "train,bench,sweep",
                           kComputes = "train,bench,sweep,eval,predict";

constexpr Row kRows[] = {
    {"train", "timeline-steps",
     [](const Config& c) {
       return when(c.timeline.empty(), "without --timeline FILE, whose steps they are");
     }},
    {"train", "keep", reason_without_checkpoints},
    {"train", "on-checkpoint-failure", reason_without_checkpoints},
    {kTrains, "resize",
     [](const Config& c) {
       return when(data::parse_data_spec(c.data_or_synthetic()).word == "synthetic",
                   "for synthetic images, which are made in their size");
     }},
    {"train,bench,sweep,eval", "exif", reason_of_exif},
    {kTrains, "data-on-device", reason_without_device},
    {"eval", "limit-train",
     [](const Config&) { return std::string("in eval, which learns nothing"); }},
    {"predict", "top",
     [](const Config& c) {
       return when(c.csv == "-" && c.json.empty(), "in --csv, which has all classes");
     }},
    {"data", "backend", reason_of_data_command},
    {"data", "precision", reason_of_data_command},
};

/// What depends on ranks, data and network.
struct RowInJob {
  std::string_view flag;
  ReasonInJob reason;
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

bool is_among(std::string_view commands, const std::string& command) {
  const std::string all = "," + std::string(commands) + ",";
  return all.find("," + command + ",") != std::string::npos;
}

/// Where the flag is an option of one backend.
std::string reason_of_option(const Config& config, const std::string& flag) {
  for (const auto& [backend, options] : config.options) {
    if (!options.contains(flag)) continue;
    if (config.command == "data") return reason_of_data_command(config);
    const std::vector<std::string> named = backends_of(config);
    const bool computes = std::ranges::find(named, backend) != named.end();
    if (computes || !is_among(kComputes, config.command)) continue;
    return "for a --backend other than " + backend;
  }
  return "";
}

std::string reason_of(const Config& config, const training::TrainingJob* job,
                      const std::string& flag) {
  for (const Row& row : kRows) {
    if (row.flag != flag || !is_among(row.commands, config.command)) continue;
    if (std::string reason = row.reason(config); !reason.empty()) return reason;
  }
  if (std::string reason = reason_of_option(config, flag); !reason.empty()) return reason;
  for (const RowInJob& row : kRowsInJob) {
    if (job && row.flag == flag) {
      if (std::string reason = row.reason(*job); !reason.empty()) return reason;
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> idle_flags(const Config& config, const training::TrainingJob* job) {
  std::vector<std::string> lines;
  if (!config.end_with.empty()) return lines;
  for (const auto& [name, value] : config.given) {
    if (config.from_environment.contains(name)) continue;
    const std::string reason = reason_of(config, job, name);
    if (reason.empty()) continue;
    const std::string words = config.switches.contains(name) ? name : name + " " + value;
    lines.push_back(fmt::format("--{} changes nothing {}", words, reason));
  }
  return lines;
}

}  // namespace cputrain::cli
