#include "training/spec/recipe_choices.h"

#include <fmt/format.h>

#include "core/error.h"

namespace cputrain::training {
namespace {

optim::UpdateRule default_rule(const std::string& name, const optim::UpdateRule& recipe) {
  if (name.empty() || name == optim::rule_name(recipe)) return recipe;
  if (name == "sgd") return optim::Sgd{};
  if (name == "adam") return optim::Adam{};
  if (name == "lars") return optim::Lars{};
  if (name == "lamb") return optim::Lamb{};
  return optim::RmsProp{};
}

[[noreturn]] void not_for(const char* flag, const optim::UpdateRule& rule) {
  fail(ExitCode::usage, fmt::format("--{} does not go with --optimizer {} (that rule has no such "
                                    "figure); leave it out or choose another optimizer",
                                    flag, optim::rule_name(rule)));
}

/// Sets the figure of the rule that `member` picks, where the flag was given.
template <class Member>
void set(optim::UpdateRule& rule, const char* flag, const std::optional<double>& value,
         Member member) {
  if (!value) return;
  std::visit(
      [&](auto& r) {
        if constexpr (requires { member(r); }) {
          member(r) = *value;
        } else {
          not_for(flag, rule);
        }
      },
      rule);
}

optim::UpdateRule choose_rule(const TrainingFlags& flags, const optim::UpdateRule& recipe) {
  optim::UpdateRule rule = default_rule(flags.optimizer, recipe);
  set(rule, "momentum", flags.momentum,
      [](auto& r) -> decltype((r.momentum)) { return r.momentum; });
  set(rule, "rho", flags.rho, [](auto& r) -> decltype((r.rho)) { return r.rho; });
  set(rule, "epsilon", flags.epsilon, [](auto& r) -> decltype((r.epsilon)) { return r.epsilon; });
  set(rule, "trust", flags.trust, [](auto& r) -> decltype((r.trust)) { return r.trust; });
  if (flags.nesterov) {
    auto* sgd = std::get_if<optim::Sgd>(&rule);
    if (!sgd) not_for("nesterov", rule);
    if (sgd->momentum == 0) fail(ExitCode::usage, "--nesterov needs --momentum above 0");
    sgd->nesterov = true;
  }
  if (flags.centered) {
    auto* rmsprop = std::get_if<optim::RmsProp>(&rule);
    if (!rmsprop) not_for("centered", rule);
    rmsprop->centered = true;
  }
  return rule;
}

}  // namespace

loop::OptimizerOptions choose_optimizer(const TrainingFlags& flags, const zoo::Recipe& recipe) {
  const optim::UpdateRule rule = choose_rule(flags, recipe.rule);
  if (flags.momentum_correction && optim::momentum_of(rule) == 0) {
    fail(ExitCode::usage, fmt::format("--momentum-correction needs --momentum above 0 ({} has none "
                                      "to correct)",
                                      optim::rule_name(rule)));
  }
  return {rule, flags.weight_decay.value_or(recipe.weight_decay), flags.clip_value, flags.clip_norm,
          flags.momentum_correction};
}

optim::LearningRateOptions choose_learning_rate(const TrainingFlags& flags,
                                                const zoo::Recipe& recipe,
                                                const optim::UpdateRule& rule) {
  if (flags.base_batch && flags.lr_scale == optim::RateScale::none && flags.warmup_epochs == 0) {
    fail(ExitCode::usage,
         fmt::format("--base-batch {} changes nothing without --lr-scale or --warmup-epochs",
                     *flags.base_batch));
  }
  const bool as_recipe = rule.index() == recipe.rule.index();
  const double rate = as_recipe ? recipe.learning_rate : optim::default_learning_rate(rule);
  return {.base = flags.lr.value_or(rate),
          .scale = flags.lr_scale,
          .warmup_epochs = flags.warmup_epochs,
          .schedule = flags.schedule.value_or(recipe.schedule)};
}

std::optional<double> scaling_of(const TrainingFlags& flags, std::size_t images_of_a_step,
                                 int ranks) {
  if (flags.base_batch) {
    return static_cast<double>(images_of_a_step) / static_cast<double>(*flags.base_batch);
  }
  if (flags.lr_scale == optim::RateScale::none) return {};
  return ranks;
}

data::PlanOptions choose_plan(const TrainingFlags& flags, const zoo::Recipe& recipe) {
  return {flags.reproducible ? data::Sharding::dealt : flags.sharding,
          flags.drop_last.value_or(recipe.drop_last), flags.accumulate, flags.batch_growth};
}

bool choose_shuffle(const TrainingFlags& flags, const zoo::Recipe& recipe) {
  if (flags.sharding != data::Sharding::shard_then_batch)
    return flags.shuffle.value_or(recipe.shuffle);
  if (flags.shuffle.value_or(false)) {
    fail(ExitCode::usage,
         "--shuffle does not go with --sharding shard-then-batch (which never shuffles); use "
         "--sharding strided, which is the same after a shuffle");
  }
  return false;
}

std::string_view sharding_name(data::Sharding sharding) {
  switch (sharding) {
    case data::Sharding::slices:
    case data::Sharding::dealt:  // slices of micro-batches
      return "slices";
    case data::Sharding::strided:
      return "strided";
    case data::Sharding::shard_then_batch:
      return "shard-then-batch";
    case data::Sharding::generator:
      return "generator";
  }
  return "";
}

std::string_view scale_name(optim::RateScale scale) {
  switch (scale) {
    case optim::RateScale::none:
      return "none";
    case optim::RateScale::linear:
      return "linear";
    case optim::RateScale::sqrt:
      return "sqrt";
    case optim::RateScale::pow23:
      return "pow23";
  }
  return "";
}

std::string growth_text(const std::vector<data::BatchGrowth>& growth) {
  std::vector<std::string> parts;
  for (const data::BatchGrowth& g : growth)
    parts.push_back(fmt::format("{}:{}", g.epochs, g.factor));
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace cputrain::training
