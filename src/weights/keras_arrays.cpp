#include "weights/keras_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

using Extents = std::vector<std::size_t>;
/// Layers of our network that have weights.
using Nodes = std::vector<const model::Graph::Node*>;
/// The file's layer for each of them; null: none.
using LayersInOrder = std::vector<const KerasLayer*>;

std::string word_of_parameter(const model::ParameterSpec& spec) {
  return spec.name.substr(spec.name.rfind('/') + 1);
}

/// Keras has a depthwise kernel as (height, width, channels, filters of each); ours is that of a
/// convolution in as many groups, (height, width, 1, all filters): the same numbers in a row.
Extents our_extents(const Extents& theirs, const KerasLayer& layer,
                    const model::ParameterSpec& spec) {
  const bool plain = layer.has_class && layer.kind != KerasKind::depthwise;
  if (spec.groups < 2 || plain) return theirs;
  if (theirs.size() != 4 || spec.extents.size() != 4 || spec.extents[2] != 1) return theirs;
  const bool depthwise = theirs[2] == static_cast<std::size_t>(spec.groups) &&
                         theirs[2] * theirs[3] == static_cast<std::size_t>(spec.extents[3]);
  return depthwise ? Extents{theirs[0], theirs[1], 1, theirs[2] * theirs[3]} : theirs;
}

bool is_norm(KerasKind kind) { return kind == KerasKind::norm || kind == KerasKind::plain_norm; }

/// Whether Keras' layer has no such array since it would be ones or zeros (scale=False).
bool leaves_out(const KerasLayer& layer, const std::string& word) {
  return is_norm(layer.kind) && layer.is_told() && (word == "gamma" || word == "beta");
}

/// Whether each parameter has an array of its shape; the head's may have other outputs.
bool fits_layer(const KerasLayer& layer, const model::Graph::Node& node, bool head) {
  return std::ranges::all_of(node.parameters, [&](const model::ParameterSpec& spec) {
    const auto* array = layer.find(word_of_parameter(spec));
    if (!array) return leaves_out(layer, word_of_parameter(spec));
    Extents theirs = our_extents(array->extents, layer, spec);
    Extents ours(spec.extents.begin(), spec.extents.end());
    if (head && theirs.size() == ours.size()) theirs.back() = ours.back();
    return theirs == ours;
  });
}

Nodes nodes_with_weights(const model::Graph& graph) {
  Nodes nodes;
  for (const model::Graph::Node& node : graph.nodes()) {
    if (!node.parameters.empty()) nodes.push_back(&node);
  }
  return nodes;
}

/// Whether every layer reads the one before, so that the order of layers is the network.
bool is_chain(const model::Graph& graph) {
  const auto nodes = graph.nodes();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].src.size() != 1 || nodes[i].src.front() != static_cast<int>(i) - 1) return false;
  }
  return true;
}

using NamesOfFile = ByName<const KerasLayer*>;

/// `others`: by what else they may be called, too.
NamesOfFile names_of(const std::vector<KerasLayer>& layers, bool others) {
  NamesOfFile names(nullptr);
  for (const KerasLayer& layer : layers) {
    if (!layer.name.empty()) names.note(layer.name, &layer);
    const bool another = !layer.other_name.empty() && layer.other_name != layer.name;
    if (others && another) names.note(layer.other_name, &layer);
  }
  return names;
}

template <class NameOf>
LayersInOrder places_by_name(const NamesOfFile& file, const Nodes& nodes, const NameOf& name_of) {
  LayersInOrder places;
  for (const model::Graph::Node* node : nodes) {
    const std::optional<std::string> name = name_of(node->name);
    const KerasLayer* found = name ? file.find(*name) : nullptr;
    // One that two of ours may mean is the first one's by no right.
    for (const KerasLayer*& earlier : places) {
      if (found && earlier == found) earlier = found = nullptr;
    }
    places.push_back(found);
  }
  return places;
}

std::ptrdiff_t missing_in(const LayersInOrder& places) {
  return std::ranges::count(places, nullptr);
}

struct Chosen {
  std::string how;
  LayersInOrder places;
};

/// By the names of layers alone, if that finds as many as what else they may be called.
Chosen most_by_name(const std::vector<KerasLayer>& layers, const Nodes& nodes,
                    std::span<const ModuleNames> names) {
  Chosen best{"own names", LayersInOrder(nodes.size(), nullptr)};
  for (const bool others : {false, true}) {
    const NamesOfFile file = names_of(layers, others);
    const auto choose = [&](const std::string& how, const auto& name_of) {
      Chosen chosen{how, places_by_name(file, nodes, name_of)};
      if (missing_in(chosen.places) < missing_in(best.places)) best = std::move(chosen);
    };
    choose("own names", [](const std::string& layer) { return std::optional(layer); });
    for (const ModuleNames& one : names) {
      choose(one.source + "'s names", [&](const std::string& layer) { return one.module(layer); });
    }
  }
  return best;
}

KerasKind kind_of_node(const model::Graph::Node& node, bool depthwise_apart) {
  const model::LayerFacts facts = model::facts_of(node.layer);
  if (facts.normalizes()) return facts.joins_images ? KerasKind::norm : KerasKind::plain_norm;
  if (!facts.has_kernel) return KerasKind::other;
  if (facts.reads_vector) return KerasKind::dense;
  const bool in_groups = node.parameters.front().groups > 1;
  return in_groups && depthwise_apart ? KerasKind::depthwise : KerasKind::convolution;
}

/// The n-th layer of a kind is the n-th of ours, if all shapes say so.
std::optional<LayersInOrder> places_by_order(const KerasLayers& file, const Nodes& nodes) {
  if (!file.in_order || file.layers.size() != nodes.size()) return {};
  const bool depthwise_apart = std::ranges::any_of(
      file.layers, [](const auto& layer) { return layer.kind == KerasKind::depthwise; });
  LayersInOrder places;
  std::map<KerasKind, std::size_t> next;
  for (const model::Graph::Node* node : nodes) {
    const KerasKind kind = kind_of_node(*node, depthwise_apart);
    const auto is_next = [&](const KerasLayer& layer) { return layer.kind == kind; };
    auto found = std::ranges::find_if(file.layers, is_next);
    for (std::size_t skip = next[kind]++; skip > 0 && found != file.layers.end(); --skip) {
      found = std::find_if(found + 1, file.layers.end(), is_next);
    }
    if (found == file.layers.end() || !fits_layer(*found, *node, node == nodes.back())) return {};
    places.push_back(&*found);
  }
  return places;
}

/// People put a last layer of their own behind a network of Keras: it is the one that is left.
void take_last_layer(const KerasLayers& file, const Nodes& nodes, Chosen& chosen) {
  if (missing_in(chosen.places) != 1 || chosen.places.back()) return;
  const KerasLayer* left = nullptr;
  for (const KerasLayer& layer : file.layers) {
    if (std::ranges::count(chosen.places, &layer) > 0) continue;
    if (left || !fits_layer(layer, *nodes.back(), true)) return;
    left = &layer;
  }
  if (!left) return;
  chosen.places.back() = left;
  chosen.how += fmt::format(", last layer {}", left->name.empty() ? "the one left" : left->name);
}

[[noreturn]] void which_is_which(const KerasFile& file, const std::string& why) {
  fail(ExitCode::data,
       "weight file {}: {} (arrays could be taken for others); save the network as a .keras file, "
       "which says it, with model.save('model.keras')",
       printable(file.path.string()), why);
}

Chosen choose_places(const KerasFile& opened, const KerasLayers& file, const model::Graph& graph,
                     std::span<const ModuleNames> names) {
  const Nodes nodes = nodes_with_weights(graph);
  Chosen chosen = most_by_name(file.layers, nodes, names);
  take_last_layer(file, nodes, chosen);
  if (missing_in(chosen.places) == 0) return chosen;
  if (is_chain(graph)) {
    if (auto places = places_by_order(file, nodes)) {
      return {"layers by their order", std::move(*places)};
    }
  }
  const bool nameless =
      std::ranges::any_of(file.layers, [](const KerasLayer& layer) { return layer.name.empty(); });
  if (missing_in(chosen.places) > 0 && nameless) {
    which_is_which(opened,
                   "it does not name its layers, as .weights.h5 of older versions of Keras do not");
  }
  const NamesOfFile twice = names_of(file.layers, false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (chosen.places[i] || !twice.is_twice(nodes[i]->name)) continue;
    which_is_which(opened, fmt::format("it has two layers {}", printable(nodes[i]->name)));
  }
  return chosen;
}

/// Networks of keras.applications that have a name in common with one here, and compute something
/// else: the shapes of all arrays would fit.
void refuse_other_networks(const KerasFile& opened, const KerasLayers& file) {
  const auto has = [&](const char* name) {
    return std::ranges::count(file.layers, name, &KerasLayer::name) > 0;
  };
  const bool mobile = has("Conv1") && has("bn_Conv1") && has("expanded_conv_depthwise");
  const bool residual = has("conv1_bn") && has("conv2_block1_3_conv") && !has("post_bn");
  if (!mobile && !residual) return;
  fail(ExitCode::data,
       "weight file {}: its layers are called as those of Keras' {}, which has strides and padding "
       "elsewhere than {} here (it would give other answers); use torchvision's or timm's weights "
       "as safetensors{}",
       printable(opened.path.string()), mobile ? "MobileNetV2" : "ResNet50",
       mobile ? "mobilenetv2" : "resnet50",
       mobile ? "" : ", or Keras' ResNet50V2 with --model resnet50v2");
}

/// The layers whose arrays are taken. A last one of other outputs is a new one here.
KerasPairs taken_pairs(const model::Graph& graph, const LayersInOrder& places) {
  KerasPairs pairs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const model::Graph::Node& node = graph.nodes()[i];
    if (node.parameters.empty()) continue;
    const KerasLayer* layer = places[next++];
    if (layer && fits_layer(*layer, node, false)) pairs.emplace_back(i, layer);
  }
  return pairs;
}

/// What Keras leaves out: a gamma of ones, a beta of zeros.
StoredArray constant(const model::ParameterSpec& spec, float value) {
  const Extents extents(spec.extents.begin(), spec.extents.end());
  return {.name = spec.name,
          .extents = extents,
          .file_name = value ? "(scale=False)" : "(center=False)",
          .file_extents = extents,
          .floats = [count = spec.size(), value] { return std::vector<float>(count, value); }};
}

/// A copy of an opened file, which outlives that; it has its own list of arrays.
using OpenedFile = std::shared_ptr<const TensorFile>;

StoredArray stored_array(const OpenedFile& numbers, const TensorInfo& array,
                         const KerasLayer& layer, const model::ParameterSpec& spec) {
  const TensorInfo* own = numbers->find(array.name);
  return {.name = spec.name,
          .extents = our_extents(array.extents, layer, spec),
          .file_name = array.name,
          .file_extents = array.extents,
          .floats = [numbers, own] { return numbers->read_floats(*own); },
          .doubles = [numbers, own] { return numbers->read(*own); }};
}

/// The arrays of a layer here from one of the file.
void take_layer(const KerasFile& file, const OpenedFile& numbers, const model::Graph::Node& node,
                const KerasLayer& layer, std::vector<StoredArray>& arrays) {
  const bool norm = model::facts_of(node.layer).normalizes();
  if (norm && is_norm(layer.kind) && !layer.is_told()) {
    which_is_which(file, fmt::format("{} has {}, and it does not say which",
                                     layer.name.empty() ? node.name : layer.name,
                                     counted(layer.arrays.size(), "array")));
  }
  for (const model::ParameterSpec& spec : node.parameters) {
    const std::string word = word_of_parameter(spec);
    if (const auto* array = layer.find(word)) {
      arrays.push_back(stored_array(numbers, *array, layer, spec));
    } else if (norm && leaves_out(layer, word)) {
      arrays.push_back(constant(spec, word == "gamma" ? 1.0f : 0.0f));
    }
  }
}

std::string group_of(const std::string& array) { return array.substr(0, array.rfind('/') + 1); }

/// Adds what was not taken to the arrays, and the names of those that are no layer's to `ignored`.
/// Whole numbers elsewhere than in groups with numbers of floating point, those of pixels left out,
/// are counters and the states of generators.
void add_others(const KerasFile& file, const KerasLayers& layers, std::vector<StoredArray>& arrays,
                std::vector<std::string>& ignored) {
  std::set<std::string> used(layers.of_pixels.begin(), layers.of_pixels.end());
  for (const StoredArray& array : arrays) {
    if (array.doubles) used.insert(array.file_name);  // others are constants
  }
  std::set<std::string> groups;
  for (const TensorInfo& array : file.arrays.tensors()) {
    groups.insert(group_of(array.name));
  }
  for (const std::string& array : layers.of_pixels) groups.erase(group_of(array));
  ignored = layers.of_pixels;
  for (const std::string& name : file.texts.unread) {
    if (is_of_no_layer(name) || !groups.contains(group_of(name))) {
      ignored.push_back(name);
    } else {
      arrays.push_back(
          {.name = name, .extents = {}, .file_name = name, .file_extents = {}, .floats = {}});
    }
  }
  for (const TensorInfo& array : file.arrays.tensors()) {
    if (!used.contains(array.name)) arrays.push_back(unread_array(array));
  }
}

}  // namespace

WeightArrays keras_arrays(const KerasFile& opened, const model::Graph& graph,
                          std::span<const ModuleNames> names, bool may_differ) {
  const KerasLayers layers = keras_layers(opened);
  const Chosen chosen = choose_places(opened, layers, graph, names);
  const Nodes nodes = nodes_with_weights(graph);
  if (2 * missing_in(chosen.places) > std::ssize(nodes)) refuse_other_networks(opened, layers);
  const auto numbers = std::make_shared<const TensorFile>(opened.arrays);
  WeightArrays made;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (chosen.places[i]) take_layer(opened, numbers, *nodes[i], *chosen.places[i], made.arrays);
  }
  std::vector<std::string> caveats =
      check_network(opened, layers.network, graph, taken_pairs(graph, chosen.places), may_differ);
  caveats.push_back(keras_caveat(layers, graph.input()));
  std::erase(caveats, "");
  add_others(opened, layers, made.arrays, made.ignored);
  const bool none = missing_in(chosen.places) == std::ssize(nodes);
  made.path = opened.path;
  made.origin = "Keras' layout, " + (none ? "unknown names" : chosen.how);
  made.caveat = join(caveats, "; ");
  made.image = layers.network.image;
  made.says_layers = layers.network.lists_layers;
  return made;
}

}  // namespace cputrain::weights
