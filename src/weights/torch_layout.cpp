#include "weights/torch_layout.h"

#include <map>
#include <numeric>

#include "core/error.h"

namespace cputrain::weights {
namespace {

using Order = std::vector<std::size_t>;
using Maps = std::vector<Shape>;

/// For each node the maps, one behind the other, in whose order (height, width, channel) its
/// numbers come when they are read as one vector: flattening and what works number by number keep
/// it.
std::vector<Maps> maps_of(const model::Graph& graph) {
  std::vector<Maps> maps;
  const auto all_read = [&](const model::Graph::Node& node) {
    Maps joined;
    for (const int src : node.src) joined.insert(joined.end(), maps[src].begin(), maps[src].end());
    return joined;
  };
  for (const auto& node : graph.nodes()) {
    const bool keeps = std::visit(
        Overloaded{
            [](const model::Flatten&) { return true; }, [](const model::Relu&) { return true; },
            [](const model::Relu6&) { return true; }, [](const model::Silu&) { return true; },
            [](const model::Dropout&) { return true; },
            [](const model::BatchNorm&) { return true; }, [](const model::Add&) { return true; },
            [](const auto&) { return false; }},
        node.layer);
    const bool joins_vectors = std::holds_alternative<model::Concat>(node.layer) &&
                               node.dst.height == 1 && node.dst.width == 1;
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
Order input_order(const model::Graph::Node& node, const Shape& src, const Maps& maps) {
  const bool flat = src.height == 1 && src.width == 1;
  const auto* convolution = std::get_if<model::Convolution>(&node.layer);
  if (convolution && convolution->groups > 1 && maps != Maps{src}) {
    fail(ExitCode::usage, "layer " + node.name +
                              " convolves a flattened map in groups (PyTorch deals other channels "
                              "to them, so the network has no such form); use --onnx");
  }
  if (flat || std::holds_alternative<model::Dense>(node.layer)) return flat_order(maps);
  Order same(static_cast<std::size_t>(src.channels));
  std::iota(same.begin(), same.end(), std::size_t{0});
  return same;
}

/// "conv2d/kernel" -> "kernel".
std::string last_word(const std::string& parameter) {
  return parameter.substr(parameter.rfind('/') + 1);
}

/// "conv2d/kernel" -> "weight".
std::string torch_word(const std::string& parameter) {
  static const std::map<std::string, std::string> names{{"kernel", "weight"},
                                                        {"gamma", "weight"},
                                                        {"beta", "bias"},
                                                        {"moving_mean", "running_mean"},
                                                        {"moving_variance", "running_var"}};
  const auto found = names.find(last_word(parameter));
  return found == names.end() ? last_word(parameter) : found->second;
}

std::size_t product(std::span<const std::size_t> extents) {
  std::size_t count = 1;
  for (const std::size_t extent : extents) count *= extent;
  return count;
}

/// f(theirs, ours) for the places of every number of an array of `outputs` rows: kernels are
/// (area, in, out) here and (out, in, area) there.
template <class F>
void for_places(std::size_t outputs, std::size_t area, const Order& inputs, const F& f) {
  std::size_t theirs = 0;
  for (std::size_t o = 0; o < outputs; ++o) {
    for (const std::size_t input : inputs) {
      for (std::size_t k = 0; k < area; ++k) {
        f(theirs++, (k * inputs.size() + input) * outputs + o);
      }
    }
  }
}

template <class F>
void for_places(const TorchParameter& parameter, std::span<const std::size_t> canonical,
                const F& f) {
  if (canonical.size() == 1) {  // a vector: of outputs, or of channels in the order of inputs
    // A network of another size has an order of its own.
    parameter.inputs->size() == canonical[0] ? for_places(1, 1, *parameter.inputs, f)
                                             : for_places(canonical[0], 1, {0}, f);
    return;
  }
  const std::size_t in = canonical[canonical.size() - 2], out = canonical.back();
  Order inputs = *parameter.inputs;
  if (inputs.size() != in) {  // as above
    inputs.resize(in);
    std::iota(inputs.begin(), inputs.end(), std::size_t{0});
  }
  for_places(out, product(canonical) / (in * out), inputs, f);
}

/// Extents of an array of PyTorch's, by the canonical ones.
std::vector<std::size_t> torch_extents(std::span<const std::size_t> e) {
  if (e.size() == 4) return {e[3], e[2], e[0], e[1]};
  return {e.rbegin(), e.rend()};
}

std::vector<float> to_torch(const TorchParameter& parameter, std::span<const float> ours) {
  std::vector<float> result(ours.size());
  for_places(parameter, parameter.extents,
             [&](std::size_t theirs, std::size_t here) { result[theirs] = ours[here]; });
  return result;
}

}  // namespace

std::vector<std::size_t> canonical_extents(std::span<const std::size_t> e) {
  if (e.size() == 4) return {e[2], e[3], e[1], e[0]};
  return {e.rbegin(), e.rend()};
}

std::vector<TorchParameter> torch_parameters(const model::Graph& graph) {
  const std::vector<Maps> maps = maps_of(graph);
  std::vector<TorchParameter> parameters;
  for (const auto& node : graph.nodes()) {
    if (node.parameters.empty()) continue;
    const int src = node.src.front();
    const auto inputs = std::make_shared<const Order>(
        input_order(node, graph.nodes()[static_cast<std::size_t>(src)].dst,
                    maps[static_cast<std::size_t>(src)]));
    static const auto none = std::make_shared<const Order>();
    const bool normalizes = std::holds_alternative<model::BatchNorm>(node.layer);
    for (const model::ParameterSpec& spec : node.parameters) {
      const bool of_outputs = spec.extents.size() == 1 && !normalizes;
      parameters.push_back({.layer = node.name,
                            .name = spec.name,
                            .word = torch_word(spec.name),
                            .extents = {spec.extents.begin(), spec.extents.end()},
                            .inputs = of_outputs ? none : inputs});
    }
  }
  return parameters;
}

std::vector<float> from_torch(const TorchParameter& parameter,
                              std::span<const std::size_t> canonical,
                              std::span<const float> theirs) {
  std::vector<float> result(theirs.size());
  for_places(parameter, canonical,
             [&](std::size_t there, std::size_t here) { result[here] = theirs[there]; });
  return result;
}

std::vector<safetensors::OutTensor> torch_tensors(const model::ExportedModel& model) {
  std::vector<safetensors::OutTensor> tensors;
  for (const TorchParameter& parameter : torch_parameters(model.graph)) {
    const auto values = [parameter, read = model.values] {
      return to_torch(parameter, read(parameter.name));
    };
    tensors.push_back(
        {parameter.layer + "." + parameter.word, torch_extents(parameter.extents), values});
  }
  return tensors;
}

}  // namespace cputrain::weights
