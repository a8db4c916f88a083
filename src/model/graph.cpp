#include "model/graph.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace cputrain::model {

Graph::Graph(Shape image, Input input) {
  nodes_.push_back({.name = "input", .layer = input, .src = {}, .dst = image, .parameters = {}});
  names_.insert("input");
}

int Graph::add(Layer layer, std::string name) {
  return add(std::move(layer), std::move(name), {static_cast<int>(nodes_.size()) - 1});
}

int Graph::add(Layer layer, std::string name, std::vector<int> src) {
  const int index = static_cast<int>(nodes_.size());
  if (name.empty()) name = next_name(layer);
  std::vector<Shape> from;
  for (const int s : src) {
    assert(s >= 0 && s < index);
    from.push_back(nodes_[s].dst);
  }
  Node node{.name = name,
            .layer = layer,
            .src = std::move(src),
            .dst = {},
            .parameters = {},
            .origin = index};
  try {
    node.dst = output_shape(layer, from);
    node.parameters = model::parameters(layer, from.front());
  } catch (const Error& error) {
    fail(error.code(), "layer " + name + ": " + error.what());
  }
  for (auto& parameter : node.parameters) parameter.name = name + "/" + parameter.name;
  names_.insert(node.name);
  nodes_.push_back(std::move(node));
  return index;
}

std::string Graph::next_name(const Layer& layer) {
  const std::string base(facts_of(layer).keras_name);
  std::string name;
  do {
    const int number = next_number_[base]++;
    name = number == 0 ? base : base + "_" + std::to_string(number);
  } while (names_.contains(name));
  return name;
}

int Graph::readers(int index) const {
  int count = 0;
  for (const Node& node : nodes_) {
    count += static_cast<int>(std::count(node.src.begin(), node.src.end(), index));
  }
  return count;
}

bool Graph::has_batch_norm() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return facts_of(node.layer).normalizes && !node.frozen;
  });
}

std::size_t Graph::learnt_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    for (const auto& parameter : node.parameters) count += parameter.learnt ? parameter.size() : 0;
  }
  return count;
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
  bool leads_back = false;  // to a layer that learns
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const double forward = macs(node.layer, src_shape(static_cast<int>(i)));
    const bool learns = !node.frozen && !node.parameters.empty();
    total += 2 * forward * (1 + (leads_back ? 1 : 0) + (learns ? 1 : 0));
    leads_back = leads_back || learns;
  }
  return total;
}

}  // namespace cputrain::model
