#include "backends/sim/layer_costs.h"

#include <algorithm>
#include <optional>

#include "core/casts.h"

namespace cputrain::sim {
namespace {

constexpr double kFloat = 4;  // bytes

simulation::CostsWhenActive measured_as(const simulation::Platform& platform,
                                        const simulation::CostTable& costs,
                                        const simulation::Team& of_node) {
  return platform.cpu ? costs.alone() : costs.when(of_node.ranks * of_node.threads);
}

/// A core's bandwidth when so many work.
double core_gbs(const simulation::CostsWhenActive& one_thread) {
  return one_thread.triad_gbs / one_thread.active;
}

/// Backward reads the weights and writes their gradient; it reads a map and its gradient and writes
/// another.
double passes(Way way) { return way == Way::forward ? 1 : 2; }

}  // namespace

LayerCosts::LayerCosts(const model::Graph& graph, const simulation::Platform& platform,
                       const simulation::CostTable& costs, int rank,
                       const simulation::Team& of_node)
    : costs_(costs),
      measured_(costs.with_threads(measured_as(platform, costs, of_node), of_node.threads)),
      slowdown_(simulation::slowdown(platform, costs, rank, of_node)),
      noise_(platform.noise.value_or(measured_.spread)),
      rank_gbs_(core_gbs(measured_as(platform, costs, of_node)) * of_node.threads),
      platform_gbs_(platform.core_gbs * of_node.threads),
      memory_slowdown_(platform.cpu ? rank_gbs_ / platform_gbs_ : 1) {
  std::optional<std::size_t> before;
  for (const simulation::LayerCost& cost : measured_.layers) {
    Layer layer{cost.name};
    const auto nodes = graph.nodes();
    const auto node = std::ranges::find(nodes, cost.name, &model::Graph::Node::name);
    double read = 0;
    if (node != nodes.end() && !node->src.empty()) {
      for (const model::ParameterSpec& spec : node->parameters) {
        layer.weight_bytes += kFloat * to_double(spec.size());
      }
      const auto index = to_int(node - nodes.begin());
      read = kFloat * to_double(graph.src_shape(index).size());
    }
    // What lies between two layers of the table (activation, pool) is computed with the first.
    if (before) layers_[*before].map_bytes += read;
    layer.map_bytes = read;
    layers_.push_back(layer);
    if (read > 0) before = layers_.size() - 1;
  }
}

const std::vector<double>& LayerCosts::seconds(std::size_t layer, Way way) const {
  const simulation::LayerCost& cost = measured_.layers[layer];
  return way == Way::forward ? cost.forward : cost.backward;
}

double LayerCosts::weight_bytes(std::size_t layer, Way way) const {
  return passes(way) * layers_[layer].weight_bytes;
}

/// How many of the `fixed` seconds, which do not grow with the images, moving weights explains.
double LayerCosts::measured_memory_seconds(std::size_t layer, Way way, double fixed) const {
  return std::min(fixed, weight_bytes(layer, way) / (rank_gbs_ * 1e9));
}

SimulatedWork LayerCosts::pass(std::size_t layer, Way way, int images) const {
  if (images == 0) return {};
  const std::vector<double>& table = seconds(layer, way);
  const double all = simulation::interpolate(costs_.sizes, table, images);
  const double fixed = std::min(all, simulation::fit_line(costs_.sizes, table).fixed);
  return work(layer, way, {fixed, all - fixed}, images);
}

SimulatedWork LayerCosts::shard(std::size_t layer, Way way, double part, std::size_t images) const {
  if (images == 0 || part == 0) return {};
  const Line line = simulation::fit_line(costs_.sizes, seconds(layer, way));
  const double n = to_double(images);
  const SimulatedWork whole = work(layer, way, {line.fixed, line.each * n}, n);
  return {part * whole.seconds, part * whole.bytes};
}

/// On the platform, what took these seconds in the measurement.
SimulatedWork LayerCosts::work(std::size_t layer, Way way, const MeasuredSeconds& measured,
                               double images) const {
  const double memory = measured_memory_seconds(layer, way, measured.fixed);
  const double computes = measured.fixed - memory + measured.of_images;
  const double maps = passes(way) * layers_[layer].map_bytes * images;
  // What a kernel keeps in caches does not travel: no more can have than the time allowed for.
  const double most = (computes + memory) * rank_gbs_ * 1e9;
  return {scaled(computes) + memory * memory_slowdown_,
          std::min(weight_bytes(layer, way) + maps, most)};
}

bool LayerCosts::may_wait_for_memory(const SimulatedWork& work) const {
  constexpr double kPart = 0.5;  // other ranks may take the rest of the node's bandwidth
  return work.bytes / (platform_gbs_ * 1e9) > kPart * work.seconds;
}

double LayerCosts::update_seconds(double numbers) const {
  return numbers * measured_.update_seconds_per_number * memory_slowdown_;
}

double LayerCosts::sum_seconds(double bytes) const {
  return bytes / (measured_.sum_gbs * 1e9) * memory_slowdown_;
}

double LayerCosts::workspace_bytes(int images) const {
  return simulation::interpolate(costs_.sizes, costs_.workspace_bytes, images);
}

}  // namespace cputrain::sim
