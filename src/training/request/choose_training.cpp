#include "training/request/choose_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/names.h"
#include "core/text.h"
#include "model/layer_patterns.h"
#include "model/layers/wrong_image_size.h"
#include "model/rewrite.h"
#include "training/request/training_rows.h"

namespace cputrain::training {
namespace {

optim::UpdateRule choose_rule(const TrainingFlags& flags, const optim::UpdateRule& recipe) {
  const std::string& asked = flags.optimizer.rule;
  const bool as_recipe = asked.empty() || asked == optim::rule_name(recipe);
  const auto named = as_recipe ? recipe : optim::rule_named(asked);
  if (!named) refuse_word("optimizer", asked, optim::rule_names());
  optim::UpdateRule rule = *named;
  std::map<std::string, double> figures = flags.optimizer.figures;
  optim::for_figures(rule, [&]<class T>(const char* name, T& figure) {
    const auto given = figures.extract(name);
    if (given) figure = static_cast<T>(given.mapped());
  });
  if (!figures.empty()) {
    fail(ExitCode::usage,
         "--optimizer: {} has no figure {}; leave it out, or choose another optimizer",
         optim::rule_name(rule), figures.begin()->first);
  }
  const auto nesterov = flags.optimizer.figures.find("nesterov");
  if (nesterov != flags.optimizer.figures.end() && nesterov->second > 0 &&
      optim::momentum_of(rule) == 0) {
    fail(ExitCode::usage,
         "--optimizer: nesterov needs a momentum above 0: sgd:momentum=0.9,nesterov");
  }
  return rule;
}

/// Rates by which models learn from nothing would undo what the weights learnt. What was tried is
/// in src/weights/README.md.
zoo::Recipe for_fine_tuning(zoo::Recipe recipe, bool head_alone) {
  recipe.rule = optim::Adam{};
  recipe.learning_rate = head_alone ? 0.001 : 0.0001;
  recipe.weight_decay = 0;
  recipe.schedule = optim::ConstantRate{};
  recipe.batch = 64;
  recipe.epochs = 10;
  recipe.drop_last = false;
  if (head_alone) recipe.augment = {};  // so that what the frozen layers make of images is kept
  return recipe;
}

/// The rule with its figures, decay, clipping. Refuses figures that the rule does not have.
loop::OptimizerOptions choose_optimizer(const TrainingFlags& flags, const zoo::Recipe& recipe) {
  const optim::UpdateRule rule = choose_rule(flags, recipe.rule);
  if (flags.momentum_correction && optim::momentum_of(rule) == 0) {
    fail(ExitCode::usage,
         "--momentum-correction needs an --optimizer with a momentum above 0 ({} has none to "
         "correct)",
         optim::rule_name(rule));
  }
  const bool as_recipe = rule.index() == recipe.rule.index();
  const double usual = as_recipe || recipe.weight_decay > 0 ? recipe.weight_decay
                                                            : optim::default_weight_decay(rule);
  return {rule,
          flags.weight_decay.value_or(usual),
          flags.clip_value,
          flags.clip_norm,
          flags.momentum_correction,
          flags.ema};
}

/// `n`, which may depend on ranks, is left open: see scaling_of.
optim::LearningRateOptions choose_learning_rate(const TrainingFlags& flags,
                                                const zoo::Recipe& recipe,
                                                const optim::UpdateRule& rule) {
  if (flags.base_batch && flags.lr_scale == optim::RateScale::none && flags.warmup_epochs == 0) {
    fail(ExitCode::usage, "--base-batch {} changes nothing without --lr-scale or --warmup-epochs",
         *flags.base_batch);
  }
  const bool as_recipe = rule.index() == recipe.rule.index();
  const double rate = as_recipe ? recipe.learning_rate : optim::default_learning_rate(rule);
  return {.base = flags.lr.value_or(rate),
          .scale = flags.lr_scale,
          .warmup_epochs = flags.warmup_epochs,
          .schedule = flags.schedule.value_or(recipe.schedule)};
}

data::PlanOptions choose_plan(const TrainingFlags& flags, const zoo::Recipe& recipe) {
  return {flags.reproducible ? data::Sharding::dealt : flags.sharding,
          flags.drop_last.value_or(recipe.drop_last), flags.accumulate, flags.batch_growth};
}

/// Whether each epoch has an order of its own. shard-then-batch has the data's.
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

/// What scaling and warm-up count with, where either is asked for: the ranks, or the images of a
/// step over --base-batch.
std::optional<double> scaling_of(const TrainingFlags& flags, std::size_t images_of_a_step,
                                 int ranks) {
  if (flags.base_batch) {
    return static_cast<double>(images_of_a_step) / static_cast<double>(*flags.base_batch);
  }
  if (flags.lr_scale == optim::RateScale::none) return {};
  return ranks;
}

/// Without the layers of --freeze something must be left to learn.
model::Graph frozen(const TrainingSpec& spec, const model::Graph& graph) {
  if (spec.flags.freeze.empty()) return graph;
  model::Graph result = model::with_frozen(graph, model::layers_matching(graph, spec.flags.freeze));
  if (result.learnt_count() > 0) return result;
  fail(ExitCode::usage, "--freeze {} leaves no layer to train; name fewer layers",
       join(spec.flags.freeze, ","));
}

/// The rates of both keep their ratio, whatever the schedule does.
model::Graph with_backbone_rate(const TrainingSpec& spec, const model::Graph& graph) {
  if (!spec.flags.backbone_lr) return graph;
  const double rate = spec.learning_rate.base;
  if (!(rate > 0)) {
    fail(ExitCode::usage,
         "--backbone-lr {:g} needs --lr above 0 (schedules change both rates by one factor); name "
         "a small --lr",
         *spec.flags.backbone_lr);
  }
  const model::Graph result =
      model::with_rate(graph, model::backbone_layers(graph), *spec.flags.backbone_lr / rate);
  const auto learns = [](const model::Graph::Node& node) { return node.rate != 1 && !node.frozen; };
  if (std::ranges::any_of(result.nodes(), learns) || *spec.flags.backbone_lr == rate) return result;
  fail(ExitCode::usage,
       "--backbone-lr: no layer but the last learns (it would change nothing); "
       "leave it out, or freeze fewer layers");
}

/// A label without an output could not be learnt, an output without a label not be named.
void check_outputs(const TrainingSpec& spec, const model::Graph& graph, int classes) {
  const int outputs = graph.back().dst.channels;
  const bool sigmoid = outputs == 1;  // which tells two classes apart
  const int named = sigmoid ? 2 : outputs;
  if (named == classes) return;
  fail(ExitCode::usage,
       "{} ends in {} for {} classes, there are {} (every label needs its output); write "
       "\"units\": \"classes\" in its last dense layer{}, or use other data or --classes",
       spec.model->name, sigmoid ? "a sigmoid of one output" : fmt::format("{} outputs", outputs),
       named, classes, sigmoid ? " and \"softmax\" in place of \"sigmoid\"" : "");
}

void check_has_dropout(const TrainingSpec& spec, const model::Graph& graph) {
  const auto drops = [](const auto& node) { return model::facts_of(node.layer).drops.has_value(); };
  if (std::ranges::any_of(graph.nodes(), drops)) return;
  fail(ExitCode::usage,
       "--dropout: {} has no dropout layer (it would change nothing); leave it out",
       spec.model->name);
}

/// Whether the network wants larger images than this; nothing where it has another complaint.
std::optional<bool> is_too_small(const TrainingSpec& spec, int size, int classes) {
  try {
    spec.model->build({size, size, spec.image.channels}, classes);
    return false;
  } catch (const model::WrongImageSize& error) {
    return error.too_small ? std::optional(true) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// "use --image-size 46 or more": the least size that fits, by trying some 20 of them; without a
/// number where none of these fits.
std::string advised_size(const TrainingSpec& spec, int classes) {
  constexpr int kLargest = 16384;
  int small = spec.image.height, fits = small;
  while (fits < kLargest && is_too_small(spec, fits, classes) == true) {
    small = fits;
    fits = std::min(fits * 2, kLargest);
  }
  while (fits - small > 1) {
    const int middle = small + (fits - small) / 2;
    (is_too_small(spec, middle, classes) == true ? small : fits) = middle;
  }
  const bool known = is_too_small(spec, fits, classes) == false;
  return known ? fmt::format("use --image-size {} or more", fits) : "use a larger --image-size";
}

model::Graph unfrozen_graph(const TrainingSpec& spec, int classes) {
  try {
    model::Graph graph = spec.model->build(spec.image, classes);
    check_outputs(spec, graph, classes);
    if (spec.flags.dropout) {
      check_has_dropout(spec, graph);
      graph = model::with_dropout(graph, static_cast<float>(*spec.flags.dropout));
    }
    if (spec.flags.normalize) graph = model::with_input(graph, *spec.flags.normalize);
    if (spec.flags.label_smoothing > 0) {
      graph = model::with_label_smoothing(graph, static_cast<float>(spec.flags.label_smoothing));
    }
    return graph;
  } catch (const model::WrongImageSize& error) {
    if (!error.too_small) throw;
    fail(ExitCode::usage, "--image-size {} is too small for {}: {}; {}", spec.image.height,
         spec.model->name, error.complaint, advised_size(spec, classes));
  }
}

}  // namespace

TrainingSpec choose_training(const TrainingFlags& flags) {
  const auto model = zoo::find_model(flags.model);
  const zoo::Recipe recipe = fine_tuning_recipe(flags, *model).value_or(model->recipe);
  const int size = flags.image_size.value_or(recipe.image_size);
  const loop::OptimizerOptions optimizer = choose_optimizer(flags, recipe);
  TrainingSpec spec{
      flags,
      model,
      {size, size, 3},
      flags.batch.value_or(recipe.batch),
      flags.epochs.value_or(recipe.epochs),
      flags.seed.value_or(0),
      optimizer,
      choose_learning_rate(flags, recipe, optimizer.rule),
      choose_plan(flags, recipe),
      choose_shuffle(flags, recipe),
      {flags.resize.value_or(recipe.resize.way), flags.fit.value_or(recipe.resize.fit)},
      flags.augment.value_or(recipe.augment)};
  const std::string obstacle = sharding_obstacle(flags);
  if (flags.shard_dense.value_or(false) && !obstacle.empty()) refuse_sharding(obstacle);
  exchange::check_compression(flags.compress, flags.allreduce);
  // Says early, on every rank alike, that an image is too small.
  build_graph(spec, flags.classes.value_or(recipe.classes));
  return spec;
}

model::Graph build_graph(const TrainingSpec& spec, int classes) {
  return with_backbone_rate(spec, frozen(spec, unfrozen_graph(spec, classes)));
}

int classes_of(const TrainingSpec& spec, const data::DataSource& source) {
  const auto& names = source.dataset->classes();
  const int found = static_cast<int>(names.size());
  const int classes = spec.flags.classes.value_or(found);
  if (classes < found) {
    fail(ExitCode::usage,
         "--classes {} is less than the {} classes of the data ({}); leave it out, or use other "
         "data",
         classes, found, printable(join(names, ", ")));
  }
  return classes;
}

std::string sharding_obstacle(const TrainingFlags& flags) {
  if (flags.reproducible)
    return "--reproducible (the order of additions would depend on the ranks)";
  using Scheme = comm::AllreduceChoice::Scheme;
  const Scheme scheme = flags.allreduce.scheme;
  if (scheme == Scheme::replicas || scheme == Scheme::server) {
    return fmt::format(
        "--allreduce {} (gradients must lie in the node's shared memory: auto, shm, "
        "hierarchical)",
        comm::to_text(flags.allreduce));
  }
  if (flags.compress != exchange::Compression{} && scheme == Scheme::automatic) {
    return fmt::format(
        "--compress {} (within one node it needs a replica on every rank; on several, say "
        "--allreduce hierarchical)",
        exchange::to_text(flags.compress));
  }
  return "";
}

void refuse_sharding(const std::string& why) {
  fail(ExitCode::usage, "--shard-dense with {}; leave one of them out", why);
}

data::ImageForm image_form(const TrainingSpec& spec) {
  return {spec.image, spec.resize, data::kept_sides(spec.augment)};
}

void follow_ready_form(TrainingSpec& spec, const data::DataSource& source) {
  const auto form = source.dataset->ready_form();
  if (!form) return;
  if (!spec.flags.resize) spec.resize.way = form->resize.way;
  if (!spec.flags.fit) spec.resize.fit = form->resize.fit;
}

void fit_to_ranks(TrainingSpec& spec, int ranks) {
  const TrainingFlags& flags = spec.flags;
  if (flags.batch_per_rank) {
    spec.batch = *flags.batch_per_rank * static_cast<std::size_t>(ranks);
  }
  const auto accumulate = static_cast<std::size_t>(spec.plan.accumulate);
  spec.learning_rate.n = scaling_of(flags, spec.batch * accumulate, ranks);
}

std::size_t largest_growth(const data::PlanOptions& plan) {
  int factor = 1;
  for (const data::BatchGrowth& growth : plan.growth) factor = std::max(factor, growth.factor);
  return static_cast<std::size_t>(factor);
}

std::optional<zoo::Recipe> fine_tuning_recipe(const TrainingFlags& flags,
                                              const zoo::ModelEntry& model) {
  if (!model.built_in() || (flags.weights.empty() && flags.first_weights.empty())) return {};
  const bool head_alone = flags.freeze == std::vector{std::string(model::kAllButHead)};
  return for_fine_tuning(model.recipe, head_alone);
}

}  // namespace cputrain::training
