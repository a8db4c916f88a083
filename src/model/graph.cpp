#include "model/graph.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace cputrain {
namespace {

/// Keras' name of the first layer of a type; later ones get _1, _2, ...
std::string keras_name(const Layer& layer) {
  const std::string_view type = type_name(layer);
  if (type == "convolution") return "conv2d";
  if (type == "max_pool") return "max_pooling2d";
  if (type == "average_pool") return "average_pooling2d";
  if (type == "global_average_pool") return "global_average_pooling2d";
  if (type == "relu") return "re_lu";
  return std::string(type);
}

}  // namespace

Graph::Graph(Shape image, Input input) {
  nodes_.push_back({.name = "input", .layer = input, .src = {}, .dst = image, .parameters = {}});
}

int Graph::add(Layer layer, std::string name) {
  return add(std::move(layer), std::move(name), {static_cast<int>(nodes_.size()) - 1});
}

int Graph::add(Layer layer, std::string name, std::vector<int> src) {
  const int index = static_cast<int>(nodes_.size());
  assert(!src.empty() && src.front() >= 0 && src.front() < index);
  if (name.empty()) name = next_name(layer);
  const Shape from = nodes_[src.front()].dst;
  Node node{.name = name,
            .layer = layer,
            .src = std::move(src),
            .dst = {},
            .parameters = cputrain::parameters(layer, from),
            .origin = index};
  try {
    node.dst = output_shape(layer, from);
  } catch (const Error& error) {
    fail(error.code(), "layer " + name + ": " + error.what());
  }
  for (auto& parameter : node.parameters) parameter.name = name + "/" + parameter.name;
  nodes_.push_back(std::move(node));
  return index;
}

std::string Graph::next_name(const Layer& layer) const {
  const std::string base = keras_name(layer);
  const auto taken = [&](const std::string& name) {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.name == name; });
  };
  if (!taken(base)) return base;
  int number = 1;
  while (taken(base + "_" + std::to_string(number))) ++number;
  return base + "_" + std::to_string(number);
}

std::size_t Graph::parameter_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    for (const auto& parameter : node.parameters) count += parameter.size();
  }
  return count;
}

double Graph::training_flops() const {
  double total = 0;
  bool first = true;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const double forward = macs(nodes_[i].layer, src_shape(static_cast<int>(i)));
    if (forward == 0) continue;
    total += 2 * forward * (first ? 2 : 3);
    first = false;
  }
  return total;
}

}  // namespace cputrain
