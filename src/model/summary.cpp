#include "model/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/text.h"
#include "model/model_json.h"
#include "model/rewrite.h"

namespace cputrain::model {
namespace {

std::size_t parameters_of(const Graph::Node& node) {
  std::size_t parameters = 0;
  for (const auto& spec : node.parameters) parameters += spec.size();
  return parameters;
}

/// For the node of this index.
double macs_of(const Graph& graph, std::size_t i) {
  return i > 0 ? macs(graph.nodes()[i].layer, graph.src_shape(static_cast<int>(i))) : 0;
}

double total_macs(const Graph& graph) {
  double total = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) total += macs_of(graph, i);
  return total;
}

/// The map that lies in memory where node `index` is read.
int stored(const Graph& graph, int index) {
  const auto& node = graph.nodes()[static_cast<std::size_t>(index)];
  return facts_of(node.layer).lays_out ? stored(graph, node.src.front()) : index;
}

/// The pool, where the next node is one and alone reads this convolution; else none.
const Graph::Node* pool_of(const Graph& graph, int index) {
  const auto nodes = graph.nodes();
  const auto next = static_cast<std::size_t>(index) + 1;
  const LayerFacts facts = facts_of(nodes[next - 1].layer);
  const bool pooled = facts.has_kernel && !facts.reads_vector && next < nodes.size() &&
                      facts_of(nodes[next].layer).pools_at_once &&
                      nodes[next].src.front() == index && graph.readers(index) == 1;
  return pooled ? &nodes[next] : nullptr;
}

}  // namespace

std::string summary_text(const Graph& graph) {
  constexpr const char* kLine = "{:<28}{:<20}{:>12}{:>14}{:>14}{:>14}\n";
  std::string text =
      fmt::format(kLine, "Layer", "type", "output", "parameters", "MACs", "output bytes");
  text += std::string(102, '=') + "\n";
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Graph::Node& node = graph.nodes()[i];
    text += fmt::format(kLine, escaped(node.name), type_name(node.layer), shape_text(node.dst),
                        with_commas(parameters_of(node)),
                        with_commas(static_cast<std::size_t>(macs_of(graph, i))),
                        with_commas(node.dst.size() * sizeof(float)));
  }
  text += std::string(102, '=') + "\n";
  const std::size_t parameters = graph.parameter_count();
  const std::size_t learnt = graph.learnt_count();
  text +=
      fmt::format("Total params: {}\nTrainable params: {}\nNon-trainable params: {}\n",
                  with_commas(parameters), with_commas(learnt), with_commas(parameters - learnt));
  text += fmt::format("MACs per image, forward: {}; FLOPs per image and training step: {}\n",
                      with_commas(static_cast<std::size_t>(total_macs(graph))),
                      with_commas(static_cast<std::size_t>(graph.training_flops())));
  text += fmt::format("Gradients reduced over the ranks in a step: {}\n",
                      bytes_text(learnt * sizeof(float)));
  return text;
}

nlohmann::ordered_json summary_json(const Graph& graph) {
  const nlohmann::ordered_json described = to_json(graph);
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Graph::Node& node = graph.nodes()[i];
    const Shape& shape = node.dst;
    layers.push_back({{"name", node.name},
                      {"type", type_name(node.layer)},
                      {"output", {shape.height, shape.width, shape.channels}},
                      {"parameters", parameters_of(node)},
                      {"macs", macs_of(graph, i)},
                      {"output_bytes", shape.size() * sizeof(float)}});
    if (i > 0) layers.back().update(described["layers"][i - 1]);
  }
  return {{"parameters", graph.parameter_count()},
          {"macs_per_image", total_macs(graph)},
          {"training_flops_per_image", graph.training_flops()},
          {"trainable_parameters", graph.learnt_count()},
          {"bytes_reduced_per_step", graph.learnt_count() * sizeof(float)},
          {"layers", std::move(layers)}};
}

std::map<std::string, Line> least_bytes(const Graph& given, std::size_t element_bytes) {
  const Graph graph = pool_before_relu(given);
  const auto nodes = graph.nodes();
  const auto element = static_cast<double>(element_bytes);
  std::map<std::string, Line> bytes;
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    const auto& node = nodes[static_cast<std::size_t>(i)];
    Line least;
    if (!pool_of(graph, i - 1)) {
      for (const int src : node.src) {
        const int from = stored(graph, src);
        const auto size = static_cast<double>(nodes[static_cast<std::size_t>(from)].dst.size());
        least.each += size * (from == 0 ? 1 : element);
      }
      const Graph::Node* pool = pool_of(graph, i);
      least.each += element * static_cast<double>((pool ? pool : &node)->dst.size());
    }
    for (const auto& parameter : node.parameters) {
      least.fixed += element * static_cast<double>(parameter.size());
    }
    bytes[node.name] = least;
  }
  return bytes;
}

double kept_numbers(const Graph& graph) {
  std::set<int> maps;
  for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
    const auto& node = graph.nodes()[static_cast<std::size_t>(i)];
    if (macs(node.layer, graph.src_shape(i)) > 0) maps.insert(stored(graph, node.src.front()));
  }
  maps.erase(0);
  double numbers = 0;
  for (const int map : maps) {
    numbers += static_cast<double>(graph.nodes()[static_cast<std::size_t>(map)].dst.size());
  }
  return numbers;
}

}  // namespace cputrain::model
