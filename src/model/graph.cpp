#include "model/graph.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "core/random/random.h"
#include "model/layers/wrong_image_size.h"

namespace cputrain::model {
namespace {

/// What numbers of an HWIO or (in, out) kernel are drawn from: true and the deviation of a normal
/// law, or false and the limit of a uniform one.
std::pair<bool, double> law_of(const ParameterSpec& kernel) {
  const auto& e = kernel.extents;
  const double area = e.size() == 4 ? static_cast<double>(e[0]) * e[1] : 1.0;
  // Numbers that one output is made of, and those that one input goes to.
  const double in = area * e[e.size() - 2], out = area * e.back();
  switch (kernel.drawn.value_or(Initializer::glorot_uniform)) {
    case Initializer::he_normal:
      return {true, std::sqrt(2 / in)};
    case Initializer::he_normal_out:
      return {true, std::sqrt(2 / out)};
    case Initializer::he_normal_group:
      return {true, std::sqrt(2 * kernel.groups / out)};
    case Initializer::uniform_in:
    case Initializer::uniform_in_only:
      return {false, 1 / std::sqrt(in)};
    case Initializer::uniform_out:
      return {false, 1 / std::sqrt(out)};
    case Initializer::normal_hundredth:
      return {true, 0.01};
    default:
      return {false, std::sqrt(6 / (in + out))};
  }
}

/// Two numbers of the normal law of deviation 1 from two words (Box and Muller 1958).
std::array<double, 2> normal_numbers(std::uint32_t a, std::uint32_t b) {
  const auto unit = [](std::uint32_t word) { return (word + 0.5) / 4294967296.0; };  // never 0
  const double length = std::sqrt(-2 * std::log(unit(a)));
  const double angle = 2 * std::numbers::pi * unit(b);
  return {length * std::cos(angle), length * std::sin(angle)};
}

/// Four numbers of a law.
std::array<double, 4> drawn(bool normal, double scale, const std::array<std::uint32_t, 4>& words) {
  std::array<double, 4> numbers{};
  if (normal) {
    const auto first = normal_numbers(words[0], words[1]),
               second = normal_numbers(words[2], words[3]);
    numbers = {first[0], first[1], second[0], second[1]};
  } else {
    for (std::size_t i = 0; i < 4; ++i)
      numbers[i] = 2 * static_cast<double>(unit_float(words[i])) - 1;
  }
  for (double& number : numbers) number = static_cast<float>(number * scale);
  return numbers;
}

}  // namespace

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
  } catch (const WrongImageSize& error) {
    throw error.in("layer " + name);
  } catch (const Error& error) {
    fail(error.code(), "layer " + name + ": " + error.what());
  }
  for (auto& parameter : node.parameters) parameter.name = name + "/" + parameter.name;
  names_.insert(node.name);
  nodes_.push_back(std::move(node));
  return index;
}

int Graph::append(const Node& node, std::vector<int> src) {
  const int index = add(node.layer, node.name, std::move(src));
  Node& copy = nodes_.back();
  copy.origin = node.origin;
  copy.frozen = node.frozen;
  copy.rate = node.rate;
  for (ParameterSpec& parameter : copy.parameters) {
    parameter.learnt &= !node.frozen;
    parameter.averaged &= !node.frozen;
    parameter.rate = node.rate;
  }
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
    return facts_of(node.layer).joins_images && !node.frozen;
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

std::vector<double> initial_values(const Graph::Node& node, const ParameterSpec& parameter,
                                   std::uint64_t seed) {
  std::vector<double> values(parameter.size(), parameter.fill);
  if (!parameter.drawn) return values;
  const ParameterSpec& kernel = node.parameters.front();
  const auto [normal, scale] = law_of(kernel);
  const bool is_bias = parameter.extents.size() < 2;
  const RandomStream stream(seed, Purpose::weights, static_cast<std::uint32_t>(node.origin));
  const std::size_t first = is_bias ? (kernel.size() + 3) / 4 : 0;  // behind the kernel's words
  for (std::size_t group = 0; group * 4 < values.size(); ++group) {
    const auto numbers = drawn(normal, scale, stream.at(static_cast<std::uint32_t>(first + group)));
    for (std::size_t i = 0; i < 4 && group * 4 + i < values.size(); ++i) {
      values[group * 4 + i] = numbers[i];
    }
  }
  return values;
}

}  // namespace cputrain::model
