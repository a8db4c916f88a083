#include "training/plan/training_features.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "model/layer_patterns.h"
#include "model/rewrite.h"

namespace cputrain::training {
namespace {

constexpr std::size_t kPartOfMemory = 4;  ///< features take no more than a quarter of what is free
constexpr int kPartsOfPass = 8;           ///< the smallest pass over new images has an eighth

/// Views of an image that these flips and turns make; 0 where there are more than some.
std::size_t views_of_image(data::Augment augment) {
  const std::size_t views =
      (augment.flip ? 2 : 1) * (augment.vflip ? 2 : 1) * (augment.six ? 6 : 1);
  augment.flip = augment.vflip = augment.six = false;
  return augment == data::Augment{} ? views : 0;
}

/// Where features are copied to the order of a batch.
std::size_t rows_of_a_pass(const TrainingPlan& plan, const compute::FeatureFacts& features) {
  return features.bytes * static_cast<std::size_t>(plan.micro_batch);
}

/// Bytes for each rank, at most those that are wanted: a part of what is free before a training,
/// and half of what it leaves, so that none is refused for what it can do without.
std::size_t room_for_features(const TrainingMemory& memory, std::size_t wanted) {
  std::size_t room = wanted;
  for (const NodeCapacity& node : memory.capacities) {
    if (!node.available) continue;
    const std::size_t needed = memory.needed(node), ranks = node.ranks.size();
    const std::size_t left = *node.available - std::min(*node.available, needed);
    const std::size_t free = *node.available - std::min(*node.available, memory.shared.cache);
    room = std::min({room, left / 2 / ranks, free / kPartOfMemory / ranks});
  }
  return room;
}

}  // namespace

std::size_t views_of(const TrainingPlan& plan, std::size_t images) {
  if (plan.chunks || model::frozen_cuts(plan.graph).empty()) return 0;
  return images * views_of_image(plan.spec.augment);
}

std::vector<int> with_sizes_of_features(const TrainingPlan& plan, std::vector<int> sizes,
                                        std::size_t views) {
  if (views == 0 || views_of_image(plan.spec.augment) == 1) return sizes;
  const int largest = *std::ranges::max_element(sizes);
  for (int part = 2; part <= kPartsOfPass; part *= 2) {
    if (largest % part == 0) sizes.push_back(largest / part);
  }
  return sizes;
}

std::optional<compute::FeatureFacts> features_of(const TrainingPlan& plan, std::size_t views,
                                                 const compute::Program& program) {
  const auto* keeper = dynamic_cast<const compute::KeepsFeatures*>(&program);
  if (views == 0 || !keeper) return std::nullopt;
  const auto features = keeper->features();
  const bool saves =
      features && model::share_of_work(model::pool_before_relu(plan.graph), features->node) > 0;
  return saves ? features : std::nullopt;
}

double keep_features(const Session& session, const TrainingPlan& plan, std::size_t views,
                     const TrainingMemory& memory, compute::Program& program) {
  const auto features = plan.keeps_features ? features_of(plan, views, program) : std::nullopt;
  if (!features) return 0;
  const model::Graph graph = model::pool_before_relu(plan.graph);
  const std::size_t needed = views * features->bytes;
  const std::size_t room = room_for_features(memory, needed + rows_of_a_pass(plan, *features));
  const std::size_t kept = room - std::min(room, rows_of_a_pass(plan, *features));
  const std::string_view layers = graph.nodes()[static_cast<std::size_t>(features->node)].name;
  if (kept < features->bytes) {
    say(session, fmt::format("Features: memory has no room to keep what the frozen layers up to {} "
                             "make of an image ({} each): they are computed in each pass",
                             layers, bytes_text(static_cast<double>(features->bytes))));
    return 0;
  }
  dynamic_cast<compute::KeepsFeatures&>(program).keep_features(kept);
  say(session,
      fmt::format("Features: what the frozen layers up to {} make of an image is kept ({} each, {} "
                  "in all{}); an image that was met in the same view costs {:.1f} % less of the "
                  "forward pass",
                  layers, bytes_text(static_cast<double>(features->bytes)),
                  bytes_text(static_cast<double>(kept)),
                  kept < needed ? ", as far as memory has room" : "",
                  100 * model::share_of_work(graph, features->node)));
  return static_cast<double>(kept) / static_cast<double>(needed);
}

}  // namespace cputrain::training
