#include "weights/torch_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "model/layer_patterns.h"

namespace cputrain::weights {
namespace {

using Order = std::vector<std::size_t>;
using Maps = std::vector<Shape>;

/// A parameter, and what PyTorch makes of it: kernels OIHW and (out, in), rows that read a
/// flattened map in its NCHW order.
struct TorchParameter {
  std::string layer, name;           ///< "conv2d", "conv2d/kernel"
  std::string word;                  ///< "weight", "bias", "running_mean", "running_var"
  std::vector<std::size_t> extents;  ///< canonical
  /// Our input channel (a dense layer's: row) for each of PyTorch's; empty for vectors of outputs.
  std::shared_ptr<const Order> inputs;
};

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
    const model::LayerFacts facts = model::facts_of(node.layer);
    const bool joins_vectors = facts.joins && node.dst.height == 1 && node.dst.width == 1;
    maps.push_back(facts.keeps_order ? maps[node.src.front()]
                   : joins_vectors   ? all_read(node)
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
  if (node.parameters.front().groups > 1 && maps != Maps{src}) {
    fail(ExitCode::usage, "layer " + node.name +
                              " convolves a flattened map in groups (PyTorch deals other channels "
                              "to them, so the network has no such form); use --onnx");
  }
  if (flat || model::facts_of(node.layer).reads_vector) return flat_order(maps);
  Order same(static_cast<std::size_t>(src.channels));
  std::iota(same.begin(), same.end(), std::size_t{0});
  return same;
}

/// "conv2d/kernel" -> "weight".
std::string torch_word(const std::string& parameter) {
  static const std::map<std::string, std::string> names{{"kernel", "weight"},
                                                        {"gamma", "weight"},
                                                        {"beta", "bias"},
                                                        {"moving_mean", "running_mean"},
                                                        {"moving_variance", "running_var"}};
  const std::string word = parameter.substr(parameter.rfind('/') + 1);
  const auto found = names.find(word);
  return found == names.end() ? word : found->second;
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

/// Canonical extents, by those of an array of PyTorch's.
std::vector<std::size_t> canonical_extents(std::span<const std::size_t> e) {
  if (e.size() == 4) return {e[2], e[3], e[1], e[0]};
  return {e.rbegin(), e.rend()};
}

/// In model order.
std::vector<TorchParameter> torch_parameters(const model::Graph& graph) {
  const std::vector<Maps> maps = maps_of(graph);
  std::vector<TorchParameter> parameters;
  for (const auto& node : graph.nodes()) {
    if (node.parameters.empty()) continue;
    const auto src = static_cast<std::size_t>(node.src.front());
    const auto inputs =
        std::make_shared<const Order>(input_order(node, graph.nodes()[src].dst, maps[src]));
    static const auto none = std::make_shared<const Order>();
    const bool normalizes = model::facts_of(node.layer).normalizes();
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

/// An array of these canonical extents, which may be those of a network with other outputs.
std::vector<float> from_torch(const TorchParameter& parameter,
                              std::span<const std::size_t> canonical,
                              std::span<const float> theirs) {
  std::vector<float> result(theirs.size());
  for_places(parameter, canonical,
             [&](std::size_t there, std::size_t here) { result[here] = theirs[there]; });
  return result;
}

/// A counter that PyTorch's batch normalization keeps beside its statistics.
constexpr std::string_view kCounter = "num_batches_tracked";

using Places = std::vector<const TensorInfo*>;

/// One way to name the parameters of a network in a file.
struct Naming {
  std::string source;              ///< whose, for people
  std::vector<std::string> names;  ///< by parameter; empty where it has none
};

Naming our_naming(const model::Graph& graph) {
  Naming naming{"own names", {}};
  for (const model::Graph::Node& node : graph.nodes()) {
    for (const model::ParameterSpec& spec : node.parameters) naming.names.push_back(spec.name);
  }
  return naming;
}

template <class ModuleOf>
Naming torch_naming(std::string source, const std::vector<TorchParameter>& parameters,
                    const ModuleOf& module_of) {
  Naming naming{std::move(source), {}};
  for (const TorchParameter& parameter : parameters) {
    const std::optional<std::string> module = module_of(parameter.layer);
    naming.names.push_back(module ? *module + "." + parameter.word : "");
  }
  return naming;
}

/// The tensors of the parameters under some names, behind a beginning ("module.").
struct Found {
  std::string source, beginning;
  Places tensors;  ///< by parameter; null: not there
  std::ptrdiff_t count = 0;
  std::string twice{};  ///< "a.fc.bias and b.fc.bias", where either may be meant
};

Found found_behind(const TensorFile& file, const Naming& naming, std::string beginning) {
  Found found{naming.source, std::move(beginning), {}};
  for (const std::string& name : naming.names) {
    found.tensors.push_back(name.empty() ? nullptr : file.find(found.beginning + name));
    if (found.tensors.back()) ++found.count;
  }
  return found;
}

/// What stands before the network's names in the file, up to a point or a slash, and how many of
/// them stand behind it.
std::map<std::string_view, std::ptrdiff_t> beginnings(const TensorFile& file,
                                                      const Naming& naming) {
  const std::set<std::string_view> names(naming.names.begin(), naming.names.end());
  std::size_t longest = 0;
  for (const std::string_view name : names) longest = std::max(longest, name.size());
  std::map<std::string_view, std::ptrdiff_t> counts;
  for (const TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    for (std::size_t length = 1; length <= std::min(longest, name.size()); ++length) {
      const std::string_view before = name.substr(0, name.size() - length);
      const bool whole_words = before.empty() || before.ends_with('.') || before.ends_with('/');
      if (whole_words && names.contains(name.substr(before.size()))) ++counts[before];
    }
  }
  return counts;
}

/// Whether every parameter has a tensor, but for those of the outputs: a head may be new.
bool is_whole_but_for_outputs(const Found& found, const model::Graph& graph) {
  const std::vector<std::string> names = our_naming(graph).names;
  const std::vector<std::string> outputs = model::class_outputs(graph).arrays;
  for (std::size_t p = 0; p < names.size(); ++p) {
    if (!found.tensors[p] && std::ranges::count(outputs, names[p]) == 0) return false;
  }
  return true;
}

void note_twice(Found& found, const Places& others) {
  for (std::size_t p = 0; p < others.size(); ++p) {
    if (!found.tensors[p] || !others[p]) continue;
    found.twice = printable(found.tensors[p]->name) + " and " + printable(others[p]->name);
  }
}

/// A beginning is left out where all names of the file have it, or all that the network needs.
/// What stands without it is taken, too, such as a head on a network within another one.
Found find_most(const TensorFile& file, const model::Graph& graph, const Naming& naming) {
  const Found plain = found_behind(file, naming, "");
  const std::size_t outputs = model::class_outputs(graph).arrays.size();
  Found best = plain;
  for (const auto& [start, count] : beginnings(file, naming)) {
    const std::string_view beginning = start;
    if (beginning.empty() || count < best.count) continue;
    const bool of_all = std::ranges::all_of(
        file.tensors(), [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
    if (!of_all && static_cast<std::size_t>(count) + outputs < naming.names.size()) continue;
    Found found = found_behind(file, naming, std::string(beginning));
    if (!of_all && !is_whole_but_for_outputs(found, graph)) continue;
    if (found.count > best.count) {
      best = std::move(found);
    } else if (!best.beginning.empty()) {
      note_twice(best, found.tensors);
    }
  }
  if (best.beginning.empty()) return best;
  note_twice(best, plain.tensors);
  for (std::size_t p = 0; p < plain.tensors.size(); ++p) {
    if (!best.tensors[p]) best.tensors[p] = plain.tensors[p];
  }
  return best;
}

Found find_most(const TensorFile& file, const model::Graph& graph,
                const std::vector<TorchParameter>& parameters, std::span<const ModuleNames> names) {
  const auto own = [](const std::string& layer) { return std::optional(layer); };
  Found best = find_most(file, graph, torch_naming("own names", parameters, own));
  for (const ModuleNames& one : names) {
    const auto theirs = [&](const std::string& layer) { return one.module(layer); };
    Found found = find_most(file, graph, torch_naming(one.source + "'s names", parameters, theirs));
    if (found.count > best.count) best = std::move(found);
  }
  return best;
}

/// Whose layout it is, and what its names are, for people. Error(data) where that is not certain.
std::string origin_of(const TensorFile& file, const char* layout, const Found& found) {
  if (!found.twice.empty()) {
    fail(ExitCode::data,
         "weight file {} holds {} (either may be the one that is meant); write a file with one of "
         "them",
         file.path().string(), found.twice);
  }
  return fmt::format(
      "{} layout, {}{}", layout, found.count ? found.source : "unknown names",
      found.beginning.empty() ? "" : fmt::format(" behind {}", printable(found.beginning)));
}

/// Those of a file with our layout.
WeightArrays our_arrays(const TensorFile& file, const Found& found) {
  WeightArrays ours = file;
  if (found.beginning.empty()) return ours;
  for (StoredArray& array : ours.arrays) {
    if (array.name.starts_with(found.beginning)) array.name.erase(0, found.beginning.size());
  }
  ours.origin = origin_of(file, "Keras'", found);
  return ours;
}

/// A dense layer may be written as a convolution over its whole map: the numbers lie alike.
std::vector<std::size_t> as_dense(const std::vector<std::size_t>& extents, std::size_t wanted) {
  if (wanted != 2 || extents.size() != 4) return extents;
  return {extents[0], extents[1] * extents[2] * extents[3]};
}

StoredArray stored(const std::shared_ptr<const TensorFile>& file, const TensorInfo& tensor,
                   const TorchParameter& parameter) {
  const std::vector<std::size_t> canonical =
      canonical_extents(as_dense(tensor.extents, parameter.extents.size()));
  return {.name = parameter.name,
          .extents = canonical,
          .file_name = tensor.name,
          .file_extents = tensor.extents,
          .rearranged = canonical.size() > 1 || !std::ranges::is_sorted(*parameter.inputs),
          .floats = [file, &tensor, parameter, canonical] {
            return from_torch(parameter, canonical, file->read_floats(tensor));
          }};
}

}  // namespace

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

WeightArrays arrays_for(const TensorFile& opened, const model::Graph& graph,
                        std::span<const ModuleNames> names) {
  const auto layout = opened.metadata().find("layout");
  const bool says = layout != opened.metadata().end();
  if (!says || layout->second != "torch") {
    const Found found = find_most(opened, graph, our_naming(graph));
    if (says || found.count > 0) return our_arrays(opened, found);
  }
  const auto file = std::make_shared<const TensorFile>(opened);
  const std::vector<TorchParameter> parameters = torch_parameters(graph);
  const Found found = find_most(*file, graph, parameters, names);
  WeightArrays made;
  made.path = file->path();
  made.metadata = file->metadata();
  made.origin = origin_of(*file, "PyTorch's", found);
  std::set<const TensorInfo*> taken;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!found.tensors[p]) continue;
    made.arrays.push_back(stored(file, *found.tensors[p], parameters[p]));
    taken.insert(found.tensors[p]);
  }
  for (const TensorInfo& tensor : file->tensors()) {
    if (taken.contains(&tensor)) continue;
    if (tensor.name.ends_with(kCounter)) {
      made.ignored.push_back(tensor.name);
    } else {
      made.arrays.push_back(unread_array(tensor));
    }
  }
  return made;
}

}  // namespace cputrain::weights
