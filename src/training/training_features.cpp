#include "training/training_features.h"

#include <fmt/format.h>

#include <algorithm>

#include "compute/kept_features.h"
#include "core/text.h"
#include "model/frozen_part.h"
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

void keep_features(const Session& session, const TrainingPlan& plan, const MemoryBefore& before,
                   compute::Program& program) {
  auto* keeper = dynamic_cast<compute::KeepsFeatures*>(&program);
  if (before.views == 0 || !keeper) return;
  const auto features = keeper->features();
  if (!features) return;
  const model::Graph graph = model::pool_before_relu(plan.graph);
  const double share = model::share_of_work(graph, features->node);
  if (share == 0) return;
  const std::size_t needed = before.views * features->bytes;
  const auto memory = rank_memory(before.capacities, before.cache);
  const std::size_t kept = std::min(needed, memory.value_or(needed) / kPartOfMemory);
  if (kept < features->bytes) return;
  keeper->keep_features(kept);
  const std::string_view part =
      kept < needed ? ", as far as a quarter of free memory has room" : "";
  say(session,
      fmt::format("Features: what the frozen layers up to {} make of an image is kept ({} each, {} "
                  "in all{}); an image that was met in the same view costs {:.1f} % less of the "
                  "forward pass",
                  graph.nodes()[static_cast<std::size_t>(features->node)].name,
                  bytes_text(static_cast<double>(features->bytes)),
                  bytes_text(static_cast<double>(kept)), part, 100 * share));
}

}  // namespace cputrain::training
