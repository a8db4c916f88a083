#include "training/run/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/state_file.h"
#include "core/text.h"
#include "data/batch_plan.h"
#include "model/layer_patterns.h"
#include "training/asked_end.h"
#include "training/plan/training_plan.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"
#include "training/run/training_identity.h"
#include "training/weights/named_weights.h"

namespace cputrain::training {
namespace {

std::string scaling_text(const TrainingSpec& spec) {
  const optim::LearningRateOptions& rate = spec.learning_rate;
  if (rate.scale == optim::RateScale::none) return fmt::format("{:g}", rate.base);
  const char* rule = rate.scale == optim::RateScale::linear ? "linear"
                     : rate.scale == optim::RateScale::sqrt ? "square root"
                                                            : "power 2/3";
  const double n = rate.n.value_or(1);
  return fmt::format(
      "{:g} x {:g} = {:g} ({} in {:g} = {})", rate.base, optim::scale_factor(rate.scale, n),
      rate.base * optim::scale_factor(rate.scale, n), rule, n,
      spec.flags.base_batch ? fmt::format("images per step / {}", *spec.flags.base_batch)
                            : "ranks: the curve depends on their number");
}

std::string warmup_text(const optim::LearningRateOptions& rate, double target) {
  if (rate.warmup_epochs == 0) return "";
  return fmt::format(", warm-up over {:g} {} from {:g}", rate.warmup_epochs,
                     plural("epoch", rate.warmup_epochs), rate.n ? target / *rate.n : 0);
}

/// Which recipe is not the model's own.
void add_fine_tuning_line(const TrainingSpec& spec, std::vector<std::string>& lines) {
  const auto recipe = fine_tuning_recipe(spec.flags, *spec.model);
  if (!recipe) return;
  lines.push_back(fmt::format(
      "Fine-tuning: where no flag says otherwise {} {:g}, batch {}, {} (the recipe of {} is "
      "for training from nothing)",
      optim::rule_name(recipe->rule), recipe->learning_rate, recipe->batch,
      counted(recipe->epochs, "epoch"), spec.model->name));
}

/// How the rate comes about, unless it is the plain one.
void add_rate_lines(const TrainingSpec& spec, std::vector<std::string>& lines) {
  const optim::LearningRateOptions& rate = spec.learning_rate;
  const bool scheduled = !std::holds_alternative<optim::ConstantRate>(rate.schedule);
  if (rate.scale != optim::RateScale::none || rate.warmup_epochs > 0 || scheduled) {
    lines.push_back(fmt::format("Learning rate {}{}, then {}", scaling_text(spec),
                                warmup_text(rate, optim::full_rate(spec.learning_rate)),
                                optim::schedule_text(rate.schedule)));
  }
  std::vector<std::string> changes;
  for (const FlagRow& row : training_rows()) {
    if (row.line.empty()) continue;
    const nlohmann::ordered_json value = row.holds ? row.holds(spec) : row.get(spec.flags);
    const double figure = value.is_number() ? value.get<double>() : value == true;
    if (figure != 0) changes.push_back(fmt::format(fmt::runtime(row.line), figure));
  }
  if (!changes.empty()) lines.push_back("Gradient: " + join(changes, ", "));
}

void add_batch_lines(const TrainingSpec& spec, const data::BatchPlan& plan,
                     std::vector<std::string>& lines) {
  if (spec.plan.accumulate > 1) {
    lines.push_back(fmt::format("Gradients of {} batches of {} make one step", spec.plan.accumulate,
                                spec.batch));
  }
  for (const data::BatchGrowth& growth : spec.plan.growth) {
    const data::BatchPlan grown = plan.in_epoch(growth.epochs);
    lines.push_back(fmt::format("After epoch {}: batch {}, {} per epoch", growth.epochs,
                                grown.global_batch(), counted(grown.steps(), "step")));
  }
  if (!spec.shuffle) lines.push_back("Images come in the data's own order in every epoch");
  if (spec.plan.drop_last) {
    lines.push_back(fmt::format("Each epoch leaves out {} of {} images, which fill no whole step",
                                plan.samples() - plan.steps() * plan.images(0), plan.samples()));
  }
}

/// In one step.
std::size_t most_images_of_a_rank(const data::BatchPlan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.ranks());
  return (plan.global_batch() + ranks - 1) / ranks *
         static_cast<std::size_t>(plan.options().accumulate);
}

void add_sharding_lines(const TrainingSpec& spec, int ranks, std::vector<std::string>& lines) {
  if (spec.plan.sharding != data::Sharding::strided) return;
  lines.push_back(fmt::format("Sharding: rank k has images k, k + {}, ... of the {} order", ranks,
                              spec.shuffle ? "shuffled" : "data's own"));
}

std::string sharding_warning(const TrainingSpec& spec, const data::BatchPlan& plan) {
  const int ranks = plan.ranks();
  if (spec.plan.sharding == data::Sharding::shard_then_batch) {
    return fmt::format(
        "--sharding shard-then-batch: rank k has images k, k + {}, ... of the data's own order "
        "(where kinds alternate there, it sees one kind only); --sharding strided shuffles first",
        ranks);
  }
  if (spec.plan.sharding == data::Sharding::generator) {
    return fmt::format(
        "--sharding generator: {} rank{} the same order of images from its start and "
        "stop{} after 1/{} of it (all draw the same images, and an epoch shows at most {} of {}); "
        "--sharding slices shows each image once",
        ranks, ranks == 1 ? " reads" : "s read", ranks == 1 ? "s" : "", ranks,
        std::min(plan.samples(), plan.steps() * most_images_of_a_rank(plan)), plan.samples());
  }
  return "";
}

std::string batch_warning(const TrainingSpec& spec, const data::BatchPlan& plan) {
  if (spec.batch <= plan.samples()) return "";
  return fmt::format(
      "--batch {} is larger than the {} training images (every epoch is one step); a smaller batch "
      "learns more in the same time",
      spec.batch, plan.samples());
}

/// Kernels in groups of several channels, which a device multiplies without its tensor cores.
std::string groups_warning(const TrainingSpec& spec, const model::Graph& graph) {
  if (!is_device(spec.flags.backend)) return "";
  const auto in_groups = [](const model::ParameterSpec& p) {
    return p.groups > 1 && p.extents.size() == 4 && p.extents[2] > 1;
  };
  const auto is_slow = [&](const auto& node) {
    return std::ranges::any_of(node.parameters, in_groups);
  };
  const auto slow = std::ranges::count_if(graph.nodes(), is_slow);
  if (slow == 0) return "";
  return fmt::format(
      "--backend {}: {} in groups of several channels, as layer {}, {} slow there (they use no "
      "tensor cores); one group, or a group for each channel, is quicker",
      spec.flags.backend, counted(static_cast<std::uint64_t>(slow), "convolution"),
      std::ranges::find_if(graph.nodes(), is_slow)->name, slow == 1 ? "is" : "are");
}

/// The part of a moving average's first value that is worth saying at the end.
constexpr double kMuch = 0.1;

/// Moving statistics that are still much of the first ones at the end, though validation computes
/// by them. Those of weights that were learnt elsewhere are worth keeping.
std::string statistics_warning(const TrainingSpec& spec, const data::BatchPlan& plan,
                               const model::Graph& graph) {
  double momentum = 0;
  for (const auto& node : graph.nodes()) {
    const double own = model::facts_of(node.layer).momentum;
    if (!node.frozen) momentum = std::max(momentum, own);
  }
  const auto steps = static_cast<double>(all_steps(plan, spec.epochs, spec.flags.steps));
  const double first = std::pow(momentum, steps);
  const bool learnt = !(spec.flags.weights.empty() && spec.flags.first_weights.empty());
  if (momentum == 0 || learnt || first < kMuch) return "";
  return fmt::format(
      "batch normalization: after the {} of this training {:.0f} % of its moving "
      "statistics are still the first ones (validation computes by them, so its accuracy is too "
      "low); make more steps, or give a smaller momentum than {:g} in a model file",
      counted(static_cast<std::uint64_t>(steps), "step"), std::floor(100 * first), momentum);
}

/// Averages that are still much of the first weights at the end.
std::string averages_warning(const TrainingSpec& spec, const data::BatchPlan& plan) {
  constexpr double kSpans = 8;
  const double decay = spec.optimizer.ema;
  const auto steps = static_cast<double>(all_steps(plan, spec.epochs, spec.flags.steps));
  const double first = std::pow(decay, steps);
  if (decay == 0 || first < kMuch) return "";
  const std::string why = fmt::format(
      "--ema {}: after the {} of this training {:.0f} % of the averages are still the "
      "first weights",
      decay, counted(static_cast<std::uint64_t>(steps), "step"), std::floor(100 * first));
  if (steps < 2 * kSpans) return why + " (averages of so few steps say little); leave it out";
  const auto decimals = static_cast<int>(-std::floor(std::log10(kSpans / steps)));
  return fmt::format("{}; averages of some {:.0f} steps would suit it: --ema {:.{}f}", why,
                     steps / kSpans, 1 - kSpans / steps, decimals);
}

constexpr int kVerboseMap = 3;  ///< --verbose: lines of an epoch, and the map of all ranks

/// Which images batch normalization's statistics are of.
std::string batch_norm_line(const TrainingFlags& flags, const data::BatchPlan& plan,
                            std::size_t ranks) {
  const std::size_t images = std::min(plan.images(0), plan.global_batch());
  const std::size_t share = (images + ranks - 1) / ranks;
  if (flags.sync_bn) {
    return fmt::format("Batch normalization: statistics of all {} of a batch, over all ranks",
                       counted(images, "image"));
  }
  return fmt::format(
      "Batch normalization: statistics of up to {} of one rank (the curve depends on the "
      "number of ranks; --sync-bn takes all images); moving statistics are averaged over ranks",
      counted(std::min(share, static_cast<std::size_t>(plan.micro_batch())), "image"));
}

void say_placement(const Session& session, const TrainingFlags& flags) {
  for (const std::string& line : session.plan.lines) say_detail(session, line);
  for (const std::string& warning : session.plan.warnings) warn(session, warning);
  if (flags.verbose.value_or(0) >= kVerboseMap) {
    for (const std::string& line : placement::map_of(session.plan)) say(session, "  " + line);
  }
  say_detail(session, "Backend: {}; ranks: {}", session.backend->facts().description,
             session.communicator->describe());
}

std::string batch_line(const Session& session, const TrainingSpec& spec,
                       const data::BatchPlan& plan, std::size_t ranks) {
  const std::size_t images = std::min(plan.images(0), plan.global_batch());
  const std::size_t least = images / ranks, most = (images + ranks - 1) / ranks;
  const DeviceChoice& device = session.device;
  const std::string place =
      device.chosen() ? fmt::format(" on {} x {}", device.all, device.name) : "";
  return fmt::format("Batch {} over {}{}: {} per rank, {} per epoch; {} {:g}, seed {}", spec.batch,
                     counted(ranks, "rank"), place,
                     (least == most ? "" : fmt::format("{} or ", least)) + counted(most, "image"),
                     counted(plan.steps(), "step"), optim::rule_name(spec.optimizer.rule),
                     optim::full_rate(spec.learning_rate), spec.seed);
}

/// The penalty that the model itself asks for; empty for none.
std::string penalty_line(const model::Graph& graph) {
  float most = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& parameter : node.parameters) {
      if (!node.frozen) most = std::max(most, parameter.l2);
    }
  }
  if (most == 0) return "";
  return fmt::format(
      "Loss: with the model's L2 penalty of kernels that learn, up to {:g} times their "
      "squares; --weight-decay comes on top",
      most);
}

/// What learns, and where the way back ends.
std::string frozen_line(const model::Graph& graph) {
  const auto nodes = graph.nodes();
  const auto learns = [](const model::Graph::Node& node) {
    return !node.parameters.empty() && !node.frozen;
  };
  const auto first = std::ranges::find_if(nodes, learns);
  const bool whole = std::ranges::none_of(nodes, &model::Graph::Node::frozen);
  return fmt::format(
      "Frozen: {}; {} of {} parameters learn",
      whole ? "no layer" : fmt::format("gradients are computed back to layer {}", first->name),
      with_commas(graph.learnt_count()), with_commas(graph.parameter_count()));
}

/// One line each for whatever is not plain: how the rate comes about, gradients of several batches,
/// growing batches, another sharding.
std::vector<std::string> recipe_lines(const TrainingSpec& spec, const data::BatchPlan& plan) {
  std::vector<std::string> lines;
  add_fine_tuning_line(spec, lines);
  add_rate_lines(spec, lines);
  add_batch_lines(spec, plan, lines);
  add_sharding_lines(spec, plan.ranks(), lines);
  return lines;
}

/// What is odd about the recipe, for those who can change it (Task::advised): a sharding that does
/// not show every rank every kind of image, averages of weights that have no time to become any, a
/// batch of more images than there are, slow groups, moving statistics with too few steps.
std::vector<std::string> recipe_warnings(const TrainingSpec& spec, const data::BatchPlan& plan,
                                         const model::Graph& graph) {
  std::vector<std::string> warnings{sharding_warning(spec, plan), averages_warning(spec, plan),
                                    batch_warning(spec, plan), groups_warning(spec, graph),
                                    statistics_warning(spec, plan, graph)};
  std::erase(warnings, "");
  return warnings;
}

void say_weights(const Session& session, const std::string& flag,
                 const nlohmann::ordered_json& training) {
  const auto began = training.find(kFirstWeights);
  const std::string first =
      began != training.end() && began->is_string() ? printable(began->get<std::string>()) : "";
  if (flag.empty()) {
    if (!first.empty()) {
      say_detail(session, "The training began with the weights of {}", first);
    }
  } else if (weights_are_there(flag)) {
    say_detail(session,
               "--weights {}: the training began with them; it goes on with those of the "
               "checkpoint, which are newer",
               flag);
  } else {  // it may be another name than that of the first weights
    say_detail(session,
               "--weights {} is not there; the training began with the weights of {}, and goes on "
               "with those of the checkpoint, which are newer",
               flag, first);
  }
}

void say_end(const Session& session, const loop::TrainingEnd& now, const loop::Progress& progress) {
  const bool over = progress.begun ? loop::steps_are_made(now, progress)  // else it is completed
                                   : loop::is_over(now, progress);
  if (!over) return;
  say(session,
      "The checkpoint is at the end that is asked for: no step follows (a larger --{} goes on)",
      now.steps ? "steps" : "epochs");
}

/// The rate of the step that is next, in a training that ends there.
double next_rate(const Training& training, const loop::TrainingEnd& end,
                 const loop::Progress& progress) {
  const data::BatchPlan& plan = training.batches().train;
  optim::LearningRate rate(training.plan().spec.learning_rate,
                           data::training_epochs(plan, end.epochs, end.steps));
  rate.set_plateau(progress.plateau);
  const std::size_t made = progress.begun ? progress.begun->steps : 0;
  const std::size_t steps = plan.in_epoch(progress.epochs).steps();
  return rate.at({progress.epochs, made, std::max(steps, made), progress.steps});
}

std::string end_text(const loop::TrainingEnd& end) {
  return "of " + (end.steps ? counted(*end.steps, "step") : counted(end.epochs, "epoch"));
}

/// A schedule that leads to the end of the training moves with it.
void say_rate(const Training& training, const loop::TrainingEnd& then, const loop::TrainingEnd& now,
              const loop::Progress& progress) {
  constexpr double kNotable = 0.01;  // part of the rate
  const double planned = next_rate(training, then, progress),
               next = next_rate(training, now, progress);
  if (std::abs(next - planned) <= kNotable * std::max(next, planned)) return;
  warn(training.session(),
       "--schedule {} ends with the training, which is now {} and was {}: the learning rate goes "
       "from {:.3g} to {:.3g}, where {:.3g} was planned (the loss may rise for a while); for one "
       "curve begin anew in another --out",
       optim::schedule_text(training.plan().spec.learning_rate.schedule), end_text(now),
       end_text(then), progress.last_rate, next, planned);
}

}  // namespace

void say_plan(const Training& training) {
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  const model::Graph& graph = training.plan().graph;
  const data::BatchPlan& plan = training.batches().train;
  const auto ranks = static_cast<std::size_t>(session.communicator->size());
  say_placement(session, spec.flags);
  const std::string learn = std::ranges::any_of(graph.nodes(), &model::Graph::Node::frozen)
                                ? fmt::format(" ({} learn)", with_commas(graph.learnt_count()))
                                : "";
  say(session,
      "Model {}: {} parameters{}, {:.3g} GFLOP per image and training step (`cputrain info --model "
      "{}` lists the layers)",
      spec.model->name, with_commas(graph.parameter_count()), learn, graph.training_flops() / 1e9,
      spec.model->spec());
  say(session, batch_line(session, spec, plan, ranks));
  for (const std::string& line : recipe_lines(spec, plan)) say_detail(session, line);
  const std::string penalty = penalty_line(graph);
  if (!penalty.empty()) say_detail(session, penalty);
  if (spec.flags.task.advised) {
    for (const std::string& warning : recipe_warnings(spec, plan, graph)) warn(session, warning);
  }
  if (graph.has_batch_norm()) say_detail(session, batch_norm_line(spec.flags, plan, ranks));
  if (!spec.flags.freeze.empty()) say_detail(session, frozen_line(graph));
  if (spec.flags.backbone_lr) {
    say_detail(
        session,
        "Learning rate of {}: {:g}, of the layers before: {:g}; what changes one changes both",
        join(model::head_layers(graph), ", "), spec.learning_rate.base, *spec.flags.backbone_lr);
  }
}

void say_what_changes(const Training& training, const std::filesystem::path& checkpoint,
                      const loop::Progress& progress) {
  if (!training.session().leads()) return;
  const nlohmann::ordered_json then = checkpoint::read_facts(checkpoint).at("training");
  say_weights(training.session(), training.plan().spec.flags.weights, then);
  const loop::TrainingEnd now = end_of(training.plan().spec);
  say_end(training.session(), now, progress);
  say_rate(training, end_of_json(then.at(kEnd)), now, progress);
}

}  // namespace cputrain::training
