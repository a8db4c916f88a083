#include "weights/keras_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

using Words = std::vector<std::string>;

[[noreturn]] void wrong_keras(const KerasFile& file, const std::string& what) {
  fail(ExitCode::data, "weight file {} {} (it cannot be loaded); save it again in Keras",
       printable(file.path.string()), what);
}

/// Behind the last separator; all of it where there is none.
std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string parent_of_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// "conv2d_3" is the fourth conv2d, and "conv2d" the first: 3, and 0.
int number_of_name(const std::string& name) {
  const std::size_t line = name.rfind('_');
  if (line == std::string::npos) return 0;
  return std::max(0, number_in<int>(std::string_view(name).substr(line + 1)).value_or(0));
}

/// "conv2d" of both.
std::string word_of_name(const std::string& name) {
  return number_of_name(name) ? name.substr(0, name.rfind('_')) : name;
}

/// By the number of axes, which tell layers of our kinds apart.
KerasKind kind_of_shapes(const std::vector<KerasLayer::Array>& arrays) {
  const std::size_t axes = arrays.front().info->extents.size();
  if (axes == 4) return KerasKind::convolution;
  if (axes == 2) return KerasKind::dense;
  const bool norm = arrays.size() == 4 && std::ranges::all_of(arrays, [&](const auto& array) {
                      return array.info->extents == arrays.front().info->extents && axes == 1;
                    });
  return norm ? KerasKind::norm : KerasKind::other;
}

/// The order in which Keras writes the arrays of a layer; empty where their number does not tell.
Words words_in_order(KerasKind kind, std::size_t count) {
  switch (kind) {
    case KerasKind::convolution:
    case KerasKind::depthwise:
    case KerasKind::dense:
      return count <= 2 ? Words{"kernel", "bias"} : Words();
    case KerasKind::norm:
      return count == 4   ? Words{"gamma", "beta", "moving_mean", "moving_variance"}
             : count == 2 ? Words{"moving_mean", "moving_variance"}
                          : Words();
    case KerasKind::plain_norm:
      return count == 2 ? Words{"gamma", "beta"} : Words();
    case KerasKind::other:
      return {};
  }
  return {};
}

void take_words(KerasLayer& layer, const Words& words) {
  for (std::size_t i = 0; i < layer.arrays.size() && i < words.size(); ++i) {
    layer.arrays[i].word = words[i];
  }
}

// The older form: every group of a layer lists its arrays, and the file its layers. These lie in
// the group `root`.

/// A list of names, which Keras cuts into pieces where it is long (`weight_names0`, ...); nothing
/// where there is none.
std::optional<Words> names_listed(const KerasFile& file, const std::string& path,
                                  const std::string& key) {
  const auto found = file.texts.attributes.find(path);
  if (found == file.texts.attributes.end()) return {};
  const auto whole = found->second.find(key);
  if (whole != found->second.end()) return whole->second;
  Words words;
  for (int piece = 0;; ++piece) {
    const auto part = found->second.find(key + std::to_string(piece));
    if (part == found->second.end()) return piece ? std::optional(words) : std::nullopt;
    words.insert(words.end(), part->second.begin(), part->second.end());
  }
}

/// "conv/kernel:0" -> "conv/kernel".
std::string without_output(const std::string& name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

std::string our_word(const std::string& word) {
  static const std::set<std::string> same{"kernel", "bias",        "gamma",
                                          "beta",   "moving_mean", "moving_variance"};
  if (word == "depthwise_kernel") return "kernel";
  return same.contains(word) ? word : "";
}

/// Theano turned its kernels round, which no other library does.
void check_backend(const KerasFile& file, const std::string& root) {
  const Words backend = names_listed(file, root, "backend").value_or(Words());
  if (backend != Words{"theano"}) return;
  fail(ExitCode::data,
       "weight file {} was written with Theano (its kernels are turned round); load and save it in "
       "a Keras 2 on TensorFlow first",
       printable(file.path.string()));
}

const TensorInfo* listed_array(const KerasFile& file, const std::string& path) {
  const TensorInfo* found = file.arrays.find(path);
  if (found) return found;
  wrong_keras(file, fmt::format("lists the array {}, of which it has no numbers of floating point",
                                printable(path)));
}

void add_named_layer(KerasLayer layer, KerasLayers& result) {
  const std::string first = last_part(without_output(layer.arrays.front().info->name));
  if (first == "mean" && layer.arrays.size() == 2) {
    for (const auto& one : layer.arrays) result.of_pixels.push_back(one.info->name);
    return;
  }
  layer.kind = layer.find("moving_variance")               ? KerasKind::norm
               : layer.find("gamma") || layer.find("beta") ? KerasKind::plain_norm
                                                           : kind_of_shapes(layer.arrays);
  // Keras 1 had other words, in the same order. Words beside known ones are of other layers.
  const bool known =
      std::ranges::any_of(layer.arrays, [](const auto& one) { return !one.word.empty(); });
  if (!known) take_words(layer, words_in_order(layer.kind, layer.arrays.size()));
  result.layers.push_back(std::move(layer));
}

/// A group has the arrays of one layer, or those of a network within the network, whose layers
/// stand before the last word: "conv1_conv/kernel:0". Frozen ones come behind the others there.
void add_named_group(const KerasFile& file, const std::set<std::string>& unread,
                     const std::string& group, const std::string& name, KerasLayers& result) {
  std::map<std::string, std::size_t> places;
  std::vector<KerasLayer> layers;
  for (const std::string& one : names_listed(file, group, "weight_names").value_or(Words())) {
    const std::string plain = without_output(one), path = group + "/" + one;
    if (unread.contains(path)) continue;
    const auto [place, added] = places.emplace(parent_of_path(plain), layers.size());
    const std::string& owner = place->first;  // "conv1/conv", which may be the layer's name
    if (added) layers.push_back({.name = last_part(owner), .other_name = owner});
    layers[place->second].arrays.push_back({listed_array(file, path), our_word(last_part(plain))});
  }
  if (layers.size() > 1) result.in_order = false;
  if (layers.size() == 1) layers.front().other_name = std::exchange(layers.front().name, name);
  for (KerasLayer& layer : layers) add_named_layer(std::move(layer), result);
}

KerasLayers named_layers(const KerasFile& file, const std::string& root, const Words& names) {
  check_backend(file, root);
  KerasLayers result{.in_order = true,
                     .network = network_said_by(file.texts.config).value_or(KerasNetwork{})};
  const std::set<std::string> unread(file.texts.unread.begin(), file.texts.unread.end());
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      wrong_keras(file, fmt::format("lists the layer {} twice", printable(name)));
    }
    add_named_group(file, unread, root.empty() ? name : root + "/" + name, name, result);
  }
  return result;
}

/// Keras 3: groups are named after the class of a layer, and arrays are numbered.
class NumberedLayers {
 public:
  explicit NumberedLayers(const KerasFile& file) : file_(file) {
    gather();
    read_network();
  }

  KerasLayers read() {
    KerasLayers result;
    bool counted = true, configured = true;
    std::set<std::string> places;
    for (const std::string& group : groups_in_order()) {
      if (!add_numbered(group, result)) continue;
      counted = counted && is_counted(group);
      configured = configured && places_.contains(usual(group));
      places.insert(parent_of_path(group));
    }
    // Else numbers of one place say which layer comes first; names of members come in any order.
    const bool has_config = !file_.texts.config.empty();
    result.in_order = has_config ? configured : counted && places.size() == 1;
    result.network = std::move(network_);
    return result;
  }

 private:
  using Arrays = std::map<int, const TensorInfo*>;

  /// Older files have another word for the list of layers.
  static std::string usual(const std::string& group) {
    return replaced(group, "_layer_checkpoint_dependencies", "layers");
  }

  void gather() {
    for (const TensorInfo& array : file_.arrays.tensors()) {
      const std::string vars = parent_of_path(array.name);
      const auto number = number_in<int>(last_part(array.name));
      if (last_part(vars) != "vars" || !number) continue;
      const std::string group = parent_of_path(vars);
      if (!group.empty()) groups_[group][*number] = &array;  // else the network's own
    }
  }

  void read_network() {
    if (file_.texts.config.empty()) return;
    try {
      network_ = read_keras_network(file_.texts.config);
      for (std::size_t i = 0; i < network_.steps.size(); ++i) {
        if (!network_.steps[i].group.empty()) places_.emplace(network_.steps[i].group, i);
      }
    } catch (const std::runtime_error& error) {
      wrong_keras(file_, std::string("has a config.json that cannot be read: ") + error.what());
    }
  }

  /// As config.json has them, the others behind; or by class and number.
  std::vector<std::string> groups_in_order() const {
    using Rank = std::tuple<std::size_t, std::string, std::string, int, std::string>;
    std::set<Rank> order;
    for (const auto& [group, arrays] : groups_) {
      const auto found = places_.find(usual(group));
      const std::size_t place = found == places_.end() ? network_.steps.size() : found->second;
      const std::string name = last_part(group);
      order.emplace(place, parent_of_path(group), word_of_name(name), number_of_name(name), group);
    }
    std::vector<std::string> groups;
    for (const Rank& rank : order) groups.push_back(std::get<4>(rank));
    return groups;
  }

  /// Whether the group is in a list of layers, which Keras names after their class. Members of a
  /// network that is a class of its own have the names that it gives them.
  static bool is_listed(const std::string& group) {
    return last_part(parent_of_path(usual(group))) == "layers";
  }

  static KerasKind kind_of_class(const std::string& group) {
    return kind_of_keras_word(word_of_name(last_part(group)));
  }

  static bool is_counted(const std::string& group) {
    return is_listed(group) && kind_of_class(group) != KerasKind::other;
  }

  /// What the configuration says of its layer; null: nothing.
  const NetworkStep* step_of_group(const std::string& group) const {
    const auto found = places_.find(usual(group));
    return found == places_.end() ? nullptr : &network_.steps[found->second];
  }

  std::string name_of(const std::string& group) const {
    const auto found = file_.texts.attributes.find(group + "/vars");
    if (found != file_.texts.attributes.end()) {
      const auto name = found->second.find("name");
      if (name != found->second.end() && name->second.size() == 1) return name->second.front();
    }
    const NetworkStep* configured = step_of_group(group);
    return configured ? configured->name : "";
  }

  /// False where it is no layer with weights.
  bool add_numbered(const std::string& group, KerasLayers& result) const {
    const Arrays& arrays = groups_.at(group);
    if (word_of_name(last_part(group)) == "normalization" && arrays.size() == 2) {
      for (const auto& [number, array] : arrays) result.of_pixels.push_back(array->name);
      return false;
    }
    KerasLayer layer{.name = name_of(group), .group = usual(group)};
    for (const auto& [number, array] : arrays) layer.arrays.push_back({array, ""});
    const KerasKind kind = kind_of_class(group);
    layer.has_class = kind != KerasKind::other && is_listed(group);
    if (!is_listed(group)) layer.other_name = last_part(group);
    if (layer.has_class) layer.kind = kind;
    if (!is_listed(group)) layer.kind = kind_of_shapes(layer.arrays);
    take_words(layer, words_of(group, layer));
    result.layers.push_back(std::move(layer));
    return true;
  }

  Words words_of(const std::string& group, const KerasLayer& layer) const {
    const NetworkStep* configured = step_of_group(group);
    const std::size_t without_one = layer.kind == KerasKind::norm         ? 3
                                    : layer.kind == KerasKind::plain_norm ? 1
                                                                          : 0;
    if (layer.arrays.size() != without_one || !configured) {
      return words_in_order(layer.kind, layer.arrays.size());
    }
    if (configured->scale == configured->center) return {};
    Words words{configured->scale ? "gamma" : "beta", "moving_mean", "moving_variance"};
    words.resize(without_one);
    return words;
  }

  const KerasFile& file_;
  std::map<std::string, Arrays> groups_;
  KerasNetwork network_;
  std::map<std::string, std::size_t> places_;  ///< among its steps, by group
};

}  // namespace

const TensorInfo* KerasLayer::find(const std::string& word) const {
  for (const Array& array : arrays) {
    if (array.word == word) return array.info;
  }
  return nullptr;
}

bool KerasLayer::is_told() const {
  return std::ranges::none_of(arrays, [](const Array& array) { return array.word.empty(); });
}

KerasLayers keras_layers(const KerasFile& file) {
  for (const char* root : {"", "model_weights"}) {
    if (const auto names = names_listed(file, root, "layer_names")) {
      return named_layers(file, root, *names);
    }
  }
  return NumberedLayers(file).read();
}

}  // namespace cputrain::weights
