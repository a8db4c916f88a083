#include "model/torch_layout.h"

#include <map>
#include <numeric>

#include "core/error.h"

namespace cputrain::model {
namespace {

using Order = std::vector<std::size_t>;
using Maps = std::vector<Shape>;

/// For each node the maps, one behind the other, in whose order (height, width, channel) its
/// numbers come when they are read as one vector: flattening and what works number by number keep
/// it.
std::vector<Maps> maps_of(const Graph& graph) {
  std::vector<Maps> maps;
  const auto all_read = [&](const Graph::Node& node) {
    Maps joined;
    for (const int src : node.src) joined.insert(joined.end(), maps[src].begin(), maps[src].end());
    return joined;
  };
  for (const auto& node : graph.nodes()) {
    const bool keeps = std::visit(
        Overloaded{[](const Flatten&) { return true; }, [](const Relu&) { return true; },
                   [](const Relu6&) { return true; }, [](const Silu&) { return true; },
                   [](const Dropout&) { return true; }, [](const BatchNorm&) { return true; },
                   [](const Add&) { return true; }, [](const auto&) { return false; }},
        node.layer);
    const bool joins_vectors =
        std::holds_alternative<Concat>(node.layer) && node.dst.height == 1 && node.dst.width == 1;
    maps.push_back(keeps           ? maps[node.src.front()]
                   : joins_vectors ? all_read(node)
                                   : Maps{node.dst});
  }
  return maps;
}

/// Our position in flattened maps for each of PyTorch's.
Order flat_order(const Maps& maps) {
  Order order;
  for (const Shape& map : maps) {
    const std::size_t first = order.size();
    const auto channels = static_cast<std::size_t>(map.channels);
    const std::size_t pixels = map.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        order.push_back(first + pixel * channels + c);
      }
    }
  }
  return order;
}

/// Our input channel (a dense layer's: row) for each of PyTorch's.
Order input_order(const Graph::Node& node, const Shape& src, const Maps& maps) {
  const bool flat = src.height == 1 && src.width == 1;
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  if (convolution && convolution->groups > 1 && maps != Maps{src}) {
    fail(ExitCode::usage, "layer " + node.name +
                              " convolves a flattened map in groups (PyTorch deals other channels "
                              "to them, so the network has no such form); use --onnx");
  }
  if (flat || std::holds_alternative<Dense>(node.layer)) return flat_order(maps);
  Order same(static_cast<std::size_t>(src.channels));
  std::iota(same.begin(), same.end(), std::size_t{0});
  return same;
}

/// (in, out) as (out, in).
std::vector<float> transposed(std::span<const float> kernel, std::size_t outputs,
                              const Order& inputs) {
  std::vector<float> result(kernel.size());
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      result[o * inputs.size() + i] = kernel[inputs[i] * outputs + o];
    }
  }
  return result;
}

std::vector<float> picked(std::span<const float> values, const Order& order) {
  std::vector<float> result;
  for (const std::size_t position : order) result.push_back(values[position]);
  return result;
}

/// "conv2d/kernel" -> "kernel".
std::string last_word(const std::string& parameter) {
  return parameter.substr(parameter.rfind('/') + 1);
}

std::string torch_name(const std::string& layer, const std::string& parameter) {
  static const std::map<std::string, std::string> names{{"kernel", "weight"},
                                                        {"gamma", "weight"},
                                                        {"beta", "bias"},
                                                        {"moving_mean", "running_mean"},
                                                        {"moving_variance", "running_var"}};
  const auto found = names.find(last_word(parameter));
  return layer + "." + (found == names.end() ? last_word(parameter) : found->second);
}

std::vector<std::size_t> torch_extents(const std::vector<int>& extents) {
  const std::vector<std::size_t> e(extents.begin(), extents.end());
  if (e.size() == 4) return {e[3], e[2], e[0], e[1]};
  return {e.rbegin(), e.rend()};
}

}  // namespace

std::vector<float> to_oihw(std::span<const float> hwio, const std::vector<int>& extents,
                           std::span<const std::size_t> inputs) {
  const std::vector<std::size_t> e(extents.begin(), extents.end());
  const std::size_t area = e[0] * e[1], in = e[2], out = e[3];
  std::vector<float> result(hwio.size());
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) {
      const std::size_t ours = inputs.empty() ? i : inputs[i];
      for (std::size_t k = 0; k < area; ++k) {
        result[(o * in + i) * area + k] = hwio[(k * in + ours) * out + o];
      }
    }
  }
  return result;
}

std::vector<safetensors::OutTensor> torch_tensors(const ExportedModel& model) {
  const std::vector<Maps> maps = maps_of(model.graph);
  std::vector<safetensors::OutTensor> tensors;
  for (const auto& node : model.graph.nodes()) {
    if (node.parameters.empty()) continue;
    const int src = node.src.front();
    const Order order = input_order(node, model.graph.nodes()[src].dst, maps[src]);
    const bool normalizes = std::holds_alternative<BatchNorm>(node.layer);
    for (const auto& spec : node.parameters) {
      const auto values = [&spec, order, normalizes, read = model.values] {
        const std::vector<float> ours = read(spec.name);
        if (spec.extents.size() == 4) return to_oihw(ours, spec.extents, order);
        if (spec.extents.size() == 2) {
          return transposed(ours, static_cast<std::size_t>(spec.extents[1]), order);
        }
        return normalizes ? picked(ours, order) : ours;
      };
      tensors.push_back({torch_name(node.name, spec.name), torch_extents(spec.extents), values});
    }
  }
  return tensors;
}

}  // namespace cputrain::model
