#include "model/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text.h"
#include "model/model_json.h"

namespace cputrain::model {
namespace {

struct Row {
  const Graph::Node* node;
  std::size_t parameters;
  double macs;
};

std::vector<Row> rows_of(const Graph& graph) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& node = graph.nodes()[i];
    std::size_t parameters = 0;
    for (const auto& spec : node.parameters) parameters += spec.size();
    rows.push_back(
        {&node, parameters, i > 0 ? macs(node.layer, graph.src_shape(static_cast<int>(i))) : 0});
  }
  return rows;
}

double total_macs(const Graph& graph) {
  double total = 0;
  for (const Row& row : rows_of(graph)) total += row.macs;
  return total;
}

}  // namespace

std::string summary_text(const Graph& graph) {
  constexpr const char* kLine = "{:<28}{:<20}{:>12}{:>14}{:>14}{:>14}\n";
  std::string text =
      fmt::format(kLine, "Layer", "type", "output", "parameters", "MACs", "output bytes");
  text += std::string(102, '=') + "\n";
  for (const Row& row : rows_of(graph)) {
    text += fmt::format(kLine, escaped(row.node->name), type_name(row.node->layer),
                        shape_text(row.node->dst), with_commas(row.parameters),
                        with_commas(static_cast<std::size_t>(row.macs)),
                        with_commas(row.node->dst.size() * sizeof(float)));
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
                      bytes_text(static_cast<double>(learnt * sizeof(float))));
  return text;
}

nlohmann::ordered_json summary_json(const Graph& graph) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(graph)) {
    const Shape& shape = row.node->dst;
    layers.push_back({{"name", row.node->name},
                      {"type", type_name(row.node->layer)},
                      {"output", {shape.height, shape.width, shape.channels}},
                      {"parameters", row.parameters},
                      {"macs", row.macs},
                      {"output_bytes", shape.size() * sizeof(float)}});
    const auto index = static_cast<int>(row.node - graph.nodes().data());
    layers.back().update(layer_fields(graph, index));
  }
  return {{"parameters", graph.parameter_count()},
          {"macs_per_image", total_macs(graph)},
          {"training_flops_per_image", graph.training_flops()},
          {"trainable_parameters", graph.learnt_count()},
          {"bytes_reduced_per_step", graph.learnt_count() * sizeof(float)},
          {"layers", std::move(layers)}};
}

}  // namespace cputrain::model
