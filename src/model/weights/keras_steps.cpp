#include "model/weights/keras_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/json_text.h"
#include "core/text.h"
#include "model/weights/keras_config.h"
#include "model/weights/keras_layer_steps.h"

namespace cputrain::model {
namespace {

using nlohmann::json;

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

class StepReader {
 public:
  void add_input() { push({.kind = StepKind::input, .name = "the image"}, {}); }

  /// Appends the steps of a network whose arrays lie in `place`. `inputs`: what it reads.
  /// Returns the step that makes its output. parse_strict_json bounds the
  /// depth.
  int add_network(const json& network, const std::string& place, const Sources& inputs) {
    const std::string kind = keras_text(keras_member(network, "class_name"));
    const bool chain = kind == "Sequential";
    const bool known =
        (chain || kind == "Functional" || kind == "Model") && is_keras_class(network);
    KerasGroups groups(place);
    std::map<std::string, int> outputs;
    int last = kUnknownStep;
    Sources before = one_of(network, inputs);
    for (const json& entry : keras_layers_of(network)) {
      Sources src = chain ? before : sources(entry, outputs, before);
      if (!known) src.reset();
      last = add(entry, groups, src);
      before = chain ? only(last) : before;
      const auto [named, added] = outputs.emplace(name_of(entry), last);
      if (!added) named->second = kUnknownStep;
    }
    return chain ? last : output_of(network, outputs);
  }

  KerasSteps finish(int output) && { return {std::move(steps_), output, std::move(not_compared_)}; }

 private:
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
    for (const json& entry : keras_layers_of(network)) count += is_input(entry);
    return count <= 1 ? inputs : std::nullopt;
  }

  static Sources sources(const json& entry, const std::map<std::string, int>& outputs,
                         const Sources& inputs) {
    if (is_input(entry)) return inputs;
    const auto names = names_read(entry);
    if (!names || names->empty()) return {};
    std::vector<int> src;
    for (const std::string& name : *names) {
      const auto found = outputs.find(name);
      src.push_back(found == outputs.end() ? kUnknownStep : found->second);
    }
    return src;
  }

  static int output_of(const json& network, const std::map<std::string, int>& outputs) {
    std::vector<std::string> names;
    gather_names(keras_member(keras_member(network, "config"), "output_layers"), names);
    const auto found = names.size() == 1 ? outputs.find(names.front()) : outputs.end();
    return found == outputs.end() ? kUnknownStep : found->second;
  }

  int push(NetworkStep step, const Sources& src) {
    const bool known = src && std::ranges::count(*src, kUnknownStep) == 0;
    if (known) step.src = *src;
    steps_.push_back(std::move(step));
    return static_cast<int>(steps_.size()) - 1;
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

  /// Returns the step that makes the layer's output.
  int add(const json& entry, KerasGroups& groups, const Sources& src) {
    const std::string kind = keras_text(keras_member(entry, "class_name"));
    const std::optional<std::string> group = groups.next(kind);
    if (group && keras_layers_of(entry).is_array()) {
      return add_network(entry, *group + "/", src);
    }
    const json& config = keras_member(entry, "config");
    NetworkStep step = is_keras_class(entry) ? keras_layer_step(entry) : NetworkStep{};
    step.name = name_of(entry);
    const std::string called = printable(fmt::format("{} ({})", kind, step.name));
    if (step.kind == StepKind::unknown) not_compared_.push_back(called);
    const bool several = src && src->size() > 1;
    adjust(step, called, is_keras_operation(entry), src && src->size() == 1, several);
    step.group = group.value_or("");
    const bool weights = step.kind == StepKind::weights;
    const int place = push(std::move(step), src);
    if (!weights || kind == "BatchNormalization") return place;
    return push(keras_activation_step(config), only(place));
  }

  NetworkSteps steps_;
  std::vector<std::string> not_compared_;
};

}  // namespace

KerasSteps keras_steps(const std::string& text) {
  StepReader reader;
  reader.add_input();
  const int output = reader.add_network(parse_strict_json(text), "", only(0));
  return std::move(reader).finish(output);
}

}  // namespace cputrain::model
