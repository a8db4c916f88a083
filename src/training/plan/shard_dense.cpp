#include "training/plan/shard_dense.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace cputrain::training {
namespace {

bool forced(const TrainingFlags& flags) { return flags.shard_dense.value_or(false); }

std::size_t kernel_size(const model::Graph::Node& node) { return node.parameters.front().size(); }

/// Dense layers that learn.
std::vector<const model::Graph::Node*> candidates(const model::Graph& graph) {
  std::vector<const model::Graph::Node*> nodes;
  for (const model::Graph::Node& node : graph.nodes()) {
    if (std::holds_alternative<model::Dense>(node.layer) && !node.frozen) nodes.push_back(&node);
  }
  return nodes;
}

}  // namespace

bool sharding_pays(std::size_t in, std::size_t out, int ranks, std::size_t images) {
  constexpr std::size_t kWorthwhile = std::size_t{1} << 20;
  constexpr int kLeastRanks = 3;
  const auto count = static_cast<std::size_t>(ranks);
  if (ranks < kLeastRanks || in * out < kWorthwhile) return false;
  return 4 * (count - 1) * in * out > 4 * images * in + 3 * count * images * out;
}

std::vector<std::string> layers_to_shard(const TrainingSpec& spec, const model::Graph& graph,
                                         const Session& session, int usual_images) {
  if (!spec.flags.shard_dense.value_or(true) || !sharding_obstacle(spec.flags).empty()) return {};
  if (!session.backend->memory().is_host()) {
    if (!forced(spec.flags)) return {};
    refuse_sharding(
        "a backend whose arrays do not lie in the host's memory, where ranks could share them");
  }
  const comm::NodeMap& map = session.nodes;
  const auto nodes = candidates(graph);
  if (nodes.empty() && forced(spec.flags))
    refuse_sharding("a model in which no dense layer learns");
  if (!map.even() && forced(spec.flags))
    refuse_sharding("nodes that have different numbers of ranks");
  if (!map.even() || map.local_size() < 2 || nodes.empty()) return {};
  const std::size_t images =
      static_cast<std::size_t>(usual_images) * static_cast<std::size_t>(map.local_size());
  std::vector<std::string> names;
  for (const model::Graph::Node* node : nodes) {
    const auto out = static_cast<std::size_t>(node->dst.channels);
    if (sharding_pays(kernel_size(*node) / out, out, map.local_size(), images)) {
      names.push_back(node->name);
    }
  }
  if (names.empty() && forced(spec.flags)) {
    names.push_back((*std::ranges::max_element(nodes, {}, [](const model::Graph::Node* node) {
                      return kernel_size(*node);
                    }))->name);
  }
  return names;
}

std::string sharding_line(const model::Graph& graph, const std::vector<std::string>& layers,
                          int ranks) {
  std::vector<std::string> texts;
  for (const model::Graph::Node& node : graph.nodes()) {
    if (std::ranges::find(layers, node.name) == layers.end()) continue;
    const auto bytes = static_cast<double>(kernel_size(node) * sizeof(float));
    texts.push_back(fmt::format("{} ({})", node.name, bytes_text(bytes)));
  }
  return fmt::format(
      "Sharded: {} over the {} ranks of a node, so that its gradient is made once per node and not "
      "once per rank (--no-shard-dense)",
      join(texts, ", "), ranks);
}

}  // namespace cputrain::training
