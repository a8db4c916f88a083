#include "job/spec/effective_flags.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "data/data_spec.h"
#include "job/spec/recipe_choices.h"
#include "system/absolute_path.h"

namespace cputrain::job {
namespace {

void put_batches(nlohmann::ordered_json& flags, const TrainingSpec& spec) {
  flags["sharding"] = word_of(spec.flags.sharding);
  flags[spec.shuffle ? "shuffle" : "no-shuffle"] = true;
  flags[spec.plan.drop_last ? "drop-last" : "no-drop-last"] = true;
  flags["accumulate"] = spec.plan.accumulate;
  if (!spec.plan.growth.empty()) flags["batch-growth"] = growth_text(spec.plan.growth);
}

void put_rule(nlohmann::ordered_json& flags, const train::OptimizerOptions& optimizer) {
  flags["optimizer"] = optim::rule_name(optimizer.rule);
  optim::for_figures(optimizer.rule, [&](const char* name, auto figure) { flags[name] = figure; });
  flags["weight-decay"] = optimizer.weight_decay;
}

void put_learning_rate(nlohmann::ordered_json& flags, const TrainingSpec& spec) {
  const optim::LearningRateOptions& rate = spec.learning_rate;
  flags["lr"] = rate.base;
  flags["lr-scale"] = word_of(rate.scale);
  flags["warmup-epochs"] = rate.warmup_epochs;
  flags["schedule"] = optim::schedule_text(rate.schedule);
  flags["label-smoothing"] = spec.flags.label_smoothing;
}

}  // namespace

nlohmann::ordered_json effective_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags;
  for (const auto& [name, value] : spec.flags.given) {
    // What excludes a flag below is said by that flag.
    const bool replaced =
        name == "batch-per-rank" || name.ends_with("shuffle") || name.ends_with("drop-last");
    const bool of_this_start =
        name == "out" || name == "overwrite" || name == "end-with" || name == "resume";
    if (!of_this_start && !replaced) flags[name] = value;
  }
  flags["model"] = spec.model->spec;
  flags["image-size"] = spec.image.height;
  flags["data"] = spec.flags.data_or_synthetic();
  flags["validation-split"] = spec.flags.validation_share();
  flags["resize"] = word_of(spec.resize);
  flags["exif"] = word_of(spec.flags.exif_choice());
  flags["augment"] = data::to_text(spec.augment);
  flags["batch"] = spec.batch;
  if (spec.flags.micro_batch)
    flags["micro-batch"] = *spec.flags.micro_batch;  // else that of the machine
  flags["epochs"] = spec.epochs;
  flags["seed"] = spec.seed;
  put_batches(flags, spec);
  put_rule(flags, spec.optimizer);
  put_learning_rate(flags, spec);
  if (!spec.flags.backend.empty()) flags["backend"] = spec.flags.backend;
  flags["precision"] = word_of(spec.flags.precision);
  return flags;
}

nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags) {
  for (const char* name : {"weights", "timeline", "out"}) {
    if (flags.contains(name)) flags[name] = system::absolute_path(flags[name]);
  }
  if (flags.contains("data")) flags["data"] = data::absolute_data_spec(flags["data"]);
  return flags;  // a model's file is absolute already (ModelEntry::spec)
}

nlohmann::ordered_json recorded_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags = effective_flags(spec);
  if (!spec.flags.weights.empty()) flags["weights"] = spec.flags.weights;
  return from_any_folder(std::move(flags));
}

}  // namespace cputrain::job
