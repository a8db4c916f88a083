#include "cli/idle_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/overloaded.h"
#include "core/text.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "system/limits/process_limits.h"
#include "training/plan/compiled_training.h"
#include "training/plan/training_plan.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"
#include "training/training.h"

namespace cputrain::cli {
namespace {

/// Why a flag that was given has no effect; empty where it has one.
template <class Asked>
struct Row {
  std::string_view flag;
  std::string (*reason)(const Asked&);
};

std::string when(bool idle, const char* reason) { return idle ? reason : ""; }

std::string reason_without_checkpoints(const training::TrainingFlags& flags) {
  return when(!flags.safety.takes_checkpoints(),
              "without checkpoints, which --checkpoint-every 0 turns off");
}

std::string reason_of_form(const training::TrainingFlags& flags) {
  return when(data::parse_data_spec(flags.data_or_synthetic()).word == data::kSynthetic,
              "for synthetic images, which are made in their size");
}

std::string reason_of_exif(const training::TrainingFlags& flags) {
  return when(!data::may_have_exif(flags.data_or_synthetic()),
              "for this data, which has no photographs with an EXIF orientation");
}

/// Words with 0 in a list whose other words change images.
std::string reason_of_augment(const training::TrainingFlags& flags) {
  const auto given =
      std::ranges::find(flags.given, "augment", [](const auto& f) { return f.first; });
  if (given == flags.given.end()) return "";
  const std::vector<std::string> idle = data::idle_words(given->second);
  return idle.empty() ? "" : fmt::format("by {} (0 is none of it)", join(idle, " and "));
}

/// What follows from flags alone.
constexpr Row<training::TrainingFlags> kRows[] = {
    {"keep", reason_without_checkpoints}, {"on-checkpoint-failure", reason_without_checkpoints},
    {"resize", reason_of_form},           {"fit", reason_of_form},
    {"augment", reason_of_augment},       {"exif", reason_of_exif},
};

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
  return training::overlaps(training.session());
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
  if (training.source().validation.empty()) return "without images of validation";
  const bool is_followed = spec.flags.safety.keeps_best() ||
                           std::holds_alternative<optim::Plateau>(spec.learning_rate.schedule);
  return when(!is_followed,
              "but the best epoch that is named, with --no-save-best and without --schedule "
              "plateau, which would follow it");
}

std::string reason_of_backbone_rate(const training::Training& training) {
  const training::TrainingSpec& spec = spec_of(training);
  return when(spec.flags.backbone_lr == spec.learning_rate.base, "beside an --lr that is the same");
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

constexpr Row<training::Training> kRowsInJob[] = {
    {"eval-every", reason_of_rare_evaluation},
    {"monitor", reason_of_monitor},
    {"backbone-lr", reason_of_backbone_rate},
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

/// Whether the training would be the same without the flag, since its value is what holds then.
bool holds_anyway(const training::TrainingFlags& flags, const std::string& name) {
  const auto& rows = training::training_rows();
  const auto row = std::ranges::find(rows, name, &training::FlagRow::name);
  if (row == rows.end()) return false;
  training::TrainingFlags without = flags;
  row->copy(without, {});
  if (!row->holds) {
    const nlohmann::ordered_json value = row->get(flags);
    return !value.is_null() && value == row->get(without);
  }
  try {
    return effective_flags(choose_training(flags)) == effective_flags(choose_training(without));
  } catch (const Error&) {  // others need it
    return false;
  }
}

}  // namespace

std::string why_idle_option(const training::TrainingFlags& flags, const std::string& flag,
                            const std::vector<std::string>& backends) {
  for (const auto& [backend, options] : flags.options) {
    if (options.contains(flag) && std::ranges::find(backends, backend) == backends.end())
      return "for a --backend other than " + backend;
  }
  return "";
}

std::string why_idle_in_training(const training::TrainingFlags& flags, const std::string& flag,
                                 const std::vector<std::string>& backends) {
  for (const Row<training::TrainingFlags>& row : kRows) {
    if (row.flag == flag) return row.reason(flags);
  }
  if (flag == "data-on-device")
    return when(std::ranges::none_of(backends, training::is_device),
                "for a --backend that computes on no device");
  return why_idle_option(flags, flag, backends);
}

std::string why_idle_in(const training::Training& training, const std::string& flag) {
  for (const Row<training::Training>& row : kRowsInJob) {
    if (row.flag == flag) return row.reason(training);
  }
  return "";
}

std::vector<std::string> idle_flags(const Options& options,
                                    const std::function<std::string(const std::string&)>& reason) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : options.given) {
    if (options.from_environment.contains(name)) continue;
    const std::string why = reason(name);
    if (why.empty()) continue;
    if (options.from_config.contains(name) && holds_anyway(options, name)) continue;
    const std::string words = options.switches.contains(name) ? name : name + " " + value;
    lines.push_back(fmt::format("--{} changes nothing {}", words, why));
  }
  return lines;
}

}  // namespace cputrain::cli
