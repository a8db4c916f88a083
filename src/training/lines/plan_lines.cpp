#include "training/lines/plan_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "model/layer_patterns.h"
#include "training/lines/recipe_lines.h"

namespace cputrain::training {
namespace {

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
  for (const std::string& line : session.plan.lines) say(session, line);
  for (const std::string& warning : session.plan.warnings) warn(session, warning);
  if (flags.verbose.value_or(0) >= kVerboseMap) {
    for (const std::string& line : placement::map_of(session.plan)) say(session, "  " + line);
  }
  say(session, fmt::format("Backend: {}; ranks: {}", session.backend->facts().description,
                           session.communicator->describe()));
}

std::string batch_line(const TrainingSpec& spec, const data::BatchPlan& plan, std::size_t ranks) {
  const std::size_t images = std::min(plan.images(0), plan.global_batch());
  const std::size_t least = images / ranks, most = (images + ranks - 1) / ranks;
  return fmt::format("Batch {} over {}: {} per rank, {} per epoch; {} {:g}, seed {}", spec.batch,
                     counted(ranks, "rank"),
                     (least == most ? "" : fmt::format("{} or ", least)) + counted(most, "image"),
                     counted(plan.steps(), "step"), optim::rule_name(spec.optimizer.rule),
                     full_rate(spec), spec.seed);
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

}  // namespace

void say_plan(const Training& training) {
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  const model::Graph& graph = training.plan().graph;
  const data::BatchPlan& plan = training.batches().train;
  const auto ranks = static_cast<std::size_t>(session.communicator->size());
  say_placement(session, spec.flags);
  say(session, fmt::format("Model {}: {} parameters, {:.3g} GFLOP per image and training step "
                           "(`cputrain info --model {}` lists the layers)",
                           spec.model->name, with_commas(graph.parameter_count()),
                           graph.training_flops() / 1e9, spec.model->spec));
  say(session, batch_line(spec, plan, ranks));
  for (const std::string& line : recipe_lines(spec, plan)) say(session, line);
  const std::string penalty = penalty_line(graph);
  if (!penalty.empty()) say(session, penalty);
  if (spec.flags.task.advised) {
    for (const std::string& warning : recipe_warnings(spec, plan, graph)) warn(session, warning);
  }
  if (graph.has_batch_norm()) say(session, batch_norm_line(spec.flags, plan, ranks));
  if (!spec.flags.freeze.empty()) say(session, frozen_line(graph));
  if (spec.flags.backbone_lr) {
    say(session, fmt::format("Learning rate of {}: {:g}, of the layers before: {:g}; what changes "
                             "one changes both",
                             join(model::head_layers(graph), ", "), spec.learning_rate.base,
                             *spec.flags.backbone_lr));
  }
}

}  // namespace cputrain::training
