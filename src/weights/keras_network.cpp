#include "weights/keras_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"
#include "weights/keras_file.h"

namespace cputrain::weights {
namespace {

using nlohmann::json;

/// The list of a network's layers; null where it has none. Keras 2 had at first no more than that
/// list for a Sequential.
const json& layers_of(const json& network) {
  const json& config = keras_member(network, "config");
  return config.is_array() ? config : keras_member(config, "layers");
}

/// Whether a layer or network is of one of Keras' own classes.
bool is_keras_class(const json& entry) {
  return keras_text(keras_member(entry, "registered_name")).find('>') == std::string::npos;
}

std::optional<Shape> image_of_sides(const json& height, const json& width) {
  const auto rows = keras_number(height, 1), columns = keras_number(width, 1);
  return rows && columns ? std::optional(Shape{*rows, *columns, 3}) : std::nullopt;
}

/// [null, 224, 224, 3]: images of any number, height, width, colours.
std::optional<Shape> image_of_shape(const json& shape) {
  if (!shape.is_array() || shape.size() != 4 || shape[3] != json(3)) return {};
  return image_of_sides(shape[1], shape[2]);
}

/// What a layer in front says of the images that it takes, or makes for those behind it.
void note_image(const std::string& kind, const json& config, std::optional<Shape>& image) {
  if (kind == "Resizing") {
    image = image_of_sides(keras_member(config, "height"), keras_member(config, "width"));
    return;
  }
  for (const char* key : {"batch_shape", "batch_input_shape"}) {  // of Keras 3, and of 2
    if (!image) image = image_of_shape(keras_member(config, key));
  }
}

/// The group in which the arrays of the next layer of this class lie: Keras names them after the
/// class, in other letters, and counts those of one class in a network. Nothing where we have no
/// use for it.
std::optional<std::string> next_group(const std::string& place, const std::string& class_name,
                                      std::map<std::string, int>& counts) {
  static const std::set<std::string> networks{"Functional", "Sequential", "Model"};
  const bool arrays = kind_of_keras_class(class_name) != KerasKind::other;
  if (!arrays && !networks.contains(class_name)) return {};
  const std::string word = keras_word(class_name);
  const int number = counts[word]++;
  return place + "layers/" + word + (number ? "_" + std::to_string(number) : "");
}

/// The steps that a layer reads; nothing where that is not known.
using Sources = std::optional<std::vector<int>>;

constexpr int kUnknownStep = -1;

Sources only(int step) { return std::vector<int>{step}; }

/// The layer of ["conv2d", 0, 0]; nothing where it is no such list, or not the first output.
std::optional<std::string> name_in_history(const json& value) {
  const bool fits = value.is_array() && value.size() >= 3 && value[0].is_string() &&
                    value[1].is_number_integer() && value[2].is_number_integer();
  return fits && value[2] == json(0) ? std::optional(value[0].get<std::string>()) : std::nullopt;
}

/// Names of the layers whose outputs stand in a call: of Keras 3 objects that say it, of Keras 2
/// lists of name and numbers.
void gather_names(const json& value, std::vector<std::string>& names) {
  if (const auto name = name_in_history(value)) {
    names.push_back(*name);
  } else if (keras_member(value, "class_name") == json("__keras_tensor__")) {
    gather_names(keras_member(keras_member(value, "config"), "keras_history"), names);
  } else if (value.is_structured()) {
    for (const json& one : value) gather_names(one, names);
  }
}

/// What a layer of a functional network reads; nothing where it is called more than once.
std::optional<std::vector<std::string>> names_read(const json& entry) {
  const json& calls = keras_member(entry, "inbound_nodes");
  if (!calls.is_array() || calls.size() != 1) return {};
  const json& call = calls.front();
  std::vector<std::string> names, others;
  gather_names(call.is_object() ? keras_member(call, "args") : call, names);
  gather_names(keras_member(call, "kwargs"), others);
  return others.empty() ? std::optional(names) : std::nullopt;
}

class NetworkReader {
 public:
  KerasNetwork read(const json& network) && {
    push({.kind = StepKind::input, .name = "the image"}, {});
    result_.lists_layers = layers_of(network).is_array();
    result_.output = add_network(network, "", only(0));
    // A network that is a class of its own says it beside its layers, if at all.
    if (!result_.image) {
      const json& built = keras_member(network, "build_config");
      result_.image = image_of_shape(keras_member(built, "input_shape"));
    }
    return std::move(result_);
  }

 private:
  /// Appends the steps of a network whose arrays lie in `place`. `inputs`: what it reads.
  /// Returns the step that makes its output. parse_strict_json bounds the depth.
  int add_network(const json& network, const std::string& place, const Sources& inputs) {
    const std::string kind = keras_text(keras_member(network, "class_name"));
    const bool chain = kind == "Sequential";
    const bool known =
        (chain || kind == "Functional" || kind == "Model") && is_keras_class(network);
    ByName<int> outputs(kUnknownStep);
    std::map<std::string, int> counts;
    int last = kUnknownStep;
    Sources before = one_of(network, inputs);
    for (const json& entry : layers_of(network)) {
      Sources src = chain ? before : sources(entry, outputs, before);
      if (!known) src.reset();
      last = add(entry, place, counts, src);
      before = chain ? only(last) : before;
      outputs.note(name_of(entry), last);
    }
    return chain ? last : output_of(network, outputs);
  }

  static bool is_input(const json& entry) {
    return keras_member(entry, "class_name") == json("InputLayer");
  }

  static std::string name_of(const json& entry) {
    const std::string name = keras_text(keras_member(entry, "name"));
    return name.empty() ? keras_text(keras_member(keras_member(entry, "config"), "name")) : name;
  }

  /// Networks of several inputs do not say here which is which.
  static Sources one_of(const json& network, const Sources& inputs) {
    int count = 0;
    for (const json& entry : layers_of(network)) count += is_input(entry);
    return count <= 1 ? inputs : std::nullopt;
  }

  static Sources sources(const json& entry, const ByName<int>& outputs, const Sources& inputs) {
    if (is_input(entry)) return inputs;
    const auto names = names_read(entry);
    if (!names || names->empty()) return {};
    std::vector<int> src;
    for (const std::string& name : *names) src.push_back(outputs.find(name));
    return src;
  }

  static int output_of(const json& network, const ByName<int>& outputs) {
    std::vector<std::string> names;
    gather_names(keras_member(keras_member(network, "config"), "output_layers"), names);
    return names.size() == 1 ? outputs.find(names.front()) : kUnknownStep;
  }

  int push(NetworkStep step, const Sources& src) {
    const bool known = src && std::ranges::count(*src, kUnknownStep) == 0;
    if (known) step.src = *src;
    result_.steps.push_back(std::move(step));
    return static_cast<int>(result_.steps.size()) - 1;
  }

  /// What a step does may depend on how many others it reads.
  static void adjust(NetworkStep& step, const std::string& called, bool operation, bool single,
                     bool several) {
    const bool joins = step.kind == StepKind::add || step.kind == StepKind::concat;
    if (joins && operation && single) step.kind = StepKind::pixels;  // "x + 1"
    if (step.kind == StepKind::pixels && several) step.kind = StepKind::foreign;
    if (step.kind == StepKind::pixels || step.kind == StepKind::foreign) {
      step.word = called + step.word;
    } else if (joins != several && step.kind != StepKind::weights) {
      step.kind = StepKind::unknown;
    }
  }

  /// What layers in front say of images and pixels.
  void note_images(const json& entry, const std::string& kind) {
    if (!front_) return;
    note_image(kind, keras_member(entry, "config"), result_.image);
    note_keras_pixels(entry, result_);
    front_ = !ends_keras_pixels(kind);
  }

  /// Returns the step that makes the layer's output.
  int add(const json& entry, const std::string& place, std::map<std::string, int>& counts,
          const Sources& src) {
    const std::string kind = keras_text(keras_member(entry, "class_name"));
    note_images(entry, kind);
    const std::optional<std::string> group = next_group(place, kind, counts);
    if (group && layers_of(entry).is_array()) {
      return add_network(entry, *group + "/", src);
    }
    const json& config = keras_member(entry, "config");
    NetworkStep step = is_keras_class(entry) ? keras_layer_step(entry) : NetworkStep{};
    step.name = name_of(entry);
    const std::string called = printable(fmt::format("{} ({})", kind, step.name));
    if (step.kind == StepKind::unknown) result_.not_compared.push_back(called);
    const bool several = src && src->size() > 1;
    adjust(step, called, is_keras_operation(entry), src && src->size() == 1, several);
    step.group = group.value_or("");
    step.scale = keras_member(config, "scale") != json(false);
    step.center = keras_member(config, "center") != json(false);
    const bool weights = step.kind == StepKind::weights;
    const int at = push(std::move(step), src);
    if (!weights || kind.ends_with("Normalization")) return at;
    return push(keras_activation_step(config), only(at));
  }

  KerasNetwork result_;
  bool front_ = true;  ///< no layer with weights came yet
};

}  // namespace

KerasNetwork read_keras_network(const std::string& config) {
  return NetworkReader().read(parse_strict_json(config));
}

std::optional<KerasNetwork> network_said_by(const std::string& config) {
  try {
    if (!config.empty()) return read_keras_network(config);
  } catch (const std::runtime_error&) {
    // Names and arrays are told without it, and Python writes numbers (Infinity) that no JSON has.
  }
  return {};
}

}  // namespace cputrain::weights
