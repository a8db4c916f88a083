#include "cli/recipe_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace cputrain {
namespace {

std::string scaling_text(const Config& config, const LearningRateOptions& rate) {
  if (rate.scale == RateScale::none) return fmt::format("{:g}", rate.base);
  const char* rule = rate.scale == RateScale::linear ? "linear"
                     : rate.scale == RateScale::sqrt ? "square root"
                                                     : "power 2/3";
  const double n = rate.n.value_or(1);
  return fmt::format("{:g} x {:g} = {:g} ({} in {:g} = {})", rate.base, scale_factor(rate.scale, n),
                     rate.base * scale_factor(rate.scale, n), rule, n,
                     config.base_batch ? fmt::format("images a step / {}", *config.base_batch)
                                       : "ranks: the curve depends on their number");
}

std::string warmup_text(const LearningRateOptions& rate, double target) {
  if (rate.warmup_epochs == 0) return "";
  return fmt::format(", warm-up over {:g} epochs from {:g}", rate.warmup_epochs,
                     rate.n ? target / *rate.n : 0);
}

/// How the rate comes about, unless it is the plain one.
void add_rate_lines(const Config& config, const TrainingChoices& choices,
                    std::vector<std::string>& lines) {
  const LearningRateOptions& rate = choices.learning_rate;
  const OptimizerOptions& optimizer = choices.optimizer;
  const bool scheduled = !std::holds_alternative<ConstantRate>(rate.schedule);
  if (rate.scale != RateScale::none || rate.warmup_epochs > 0 || scheduled) {
    lines.push_back(fmt::format("Learning rate {}{}, then {}", scaling_text(config, rate),
                                warmup_text(rate, full_rate(choices)),
                                schedule_text(rate.schedule)));
  }
  std::vector<std::string> changes;
  if (optimizer.weight_decay > 0) {
    changes.push_back(fmt::format("weight decay {:g}", optimizer.weight_decay));
  }
  if (optimizer.clip_value) {
    changes.push_back(fmt::format("elements clipped to {:g}", *optimizer.clip_value));
  }
  if (optimizer.clip_norm) {
    changes.push_back(fmt::format("norm clipped to {:g}", *optimizer.clip_norm));
  }
  if (optimizer.momentum_correction) changes.push_back("momentum corrected where the rate changes");
  if (config.label_smoothing > 0) {
    changes.push_back(fmt::format("labels smoothed by {:g}", config.label_smoothing));
  }
  if (!changes.empty()) lines.push_back("Gradient: " + join(changes, ", "));
}

void add_batch_lines(const TrainingChoices& choices, const BatchPlan& plan,
                     std::vector<std::string>& lines) {
  if (choices.plan.accumulate > 1) {
    lines.push_back(fmt::format("Gradients of {} batches of {} make one step",
                                choices.plan.accumulate, choices.batch));
  }
  for (const BatchGrowth& growth : choices.plan.growth) {
    const BatchPlan grown = plan.in_epoch(growth.epochs);
    lines.push_back(fmt::format("After epoch {}: batch {}, {} steps an epoch", growth.epochs,
                                grown.global_batch(), grown.steps()));
  }
  if (!choices.shuffle) lines.push_back("Images come in the data's own order in every epoch");
  if (choices.plan.drop_last) {
    lines.push_back(fmt::format("Each epoch leaves out {} of {} images, which fill no whole step",
                                plan.samples() - plan.steps() * plan.images(0), plan.samples()));
  }
}

/// Of one step.
std::size_t most_images_of_a_rank(const BatchPlan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.ranks());
  return (plan.global_batch() + ranks - 1) / ranks *
         static_cast<std::size_t>(plan.options().accumulate);
}

void add_sharding_lines(const TrainingChoices& choices, int ranks,
                        std::vector<std::string>& lines) {
  if (choices.plan.sharding != Sharding::strided) return;
  lines.push_back(fmt::format("Sharding: rank k has images k, k + {}, ... of the {} order", ranks,
                              choices.shuffle ? "shuffled" : "data's own"));
}

}  // namespace

double full_rate(const TrainingChoices& choices) {
  const LearningRateOptions& rate = choices.learning_rate;
  return rate.base * scale_factor(rate.scale, rate.n.value_or(1));
}

std::vector<std::string> recipe_lines(const Config& config, const TrainingChoices& choices,
                                      const BatchPlan& plan) {
  std::vector<std::string> lines;
  add_rate_lines(config, choices, lines);
  add_batch_lines(choices, plan, lines);
  add_sharding_lines(choices, plan.ranks(), lines);
  return lines;
}

std::vector<std::string> recipe_warnings(const TrainingChoices& choices, const BatchPlan& plan) {
  const int ranks = plan.ranks();
  if (choices.plan.sharding == Sharding::shard_then_batch) {
    return {fmt::format(
        "--sharding shard-then-batch: rank k has images k, k + {}, ... of the data's own order "
        "(where kinds alternate there, it sees one kind only); --sharding strided shuffles first",
        ranks)};
  }
  if (choices.plan.sharding == Sharding::generator) {
    return {fmt::format(
        "--sharding generator: {} rank{} the same order of images from its start and "
        "stop{} after 1/{} of it (all draw the same images, and an epoch shows at most {} of {}); "
        "--sharding slices shows each image once",
        ranks, ranks == 1 ? " reads" : "s read", ranks == 1 ? "s" : "", ranks,
        std::min(plan.samples(), plan.steps() * most_images_of_a_rank(plan)), plan.samples())};
  }
  return {};
}

std::string accuracy_line(const TrainResult& result, double target) {
  if (!result.reached) {
    return fmt::format("Target accuracy {:g}: not reached in {} epochs", target, result.epochs);
  }
  return fmt::format("Target accuracy {:g}: {:.4f} after epoch {} and {:.1f} s of training", target,
                     result.reached->accuracy, result.reached->epoch, result.reached->seconds);
}

}  // namespace cputrain
