#include "model/weights/keras_config.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/strict_json.h"

namespace cputrain::model {
namespace {

using nlohmann::json;

/// Keras names the group of a layer after its class, in other letters, and counts those of one
/// class.
const std::map<std::string, std::string>& groups_of_classes() {
  static const std::map<std::string, std::string> groups{
      {"Conv2D", "conv2d"},
      {"DepthwiseConv2D", "depthwise_conv2d"},
      {"Dense", "dense"},
      {"BatchNormalization", "batch_normalization"},
      {"Functional", "functional"},
      {"Sequential", "sequential"},
      {"Model", "model"}};
  return groups;
}

/// Null where there is none.
const json& member(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

KerasRescaling rescaling_of(const json& config) {
  const json &scale = member(config, "scale"), &offset = member(config, "offset");
  if (!scale.is_number() || !(offset.is_number() || offset.is_null())) return {};
  return {.scale = scale.get<double>(), .offset = offset.is_null() ? 0 : offset.get<double>()};
}

/// Keras 2 had at first no more than the list for a Sequential.
const json& layers_of(const json& network) {
  const json& config = member(network, "config");
  return config.is_array() ? config : member(config, "layers");
}

/// Appends the layers of a network, whose groups lie in `place`. parse_strict_json bounds the
/// depth.
void add_layers(const json& network, const std::string& place, KerasConfig& result) {
  std::map<std::string, int> counts;
  for (const json& entry : layers_of(network)) {
    const std::string kind = text_of(member(entry, "class_name"));
    if (kind == "Rescaling") result.rescalings.push_back(rescaling_of(member(entry, "config")));
    const auto group = groups_of_classes().find(kind);
    if (group == groups_of_classes().end()) continue;
    const int number = counts[group->second]++;
    const std::string path =
        place + "layers/" + group->second + (number ? "_" + std::to_string(number) : "");
    const json& config = member(entry, "config");
    if (layers_of(entry).is_array()) {
      add_layers(entry, path + "/", result);
      continue;
    }
    result.layers.push_back({.group = path,
                             .name = text_of(member(config, "name")),
                             .scale = member(config, "scale") != json(false),
                             .center = member(config, "center") != json(false)});
  }
}

}  // namespace

KerasConfig keras_config(const std::string& text) {
  KerasConfig result;
  add_layers(parse_strict_json(text), "", result);
  return result;
}

}  // namespace cputrain::model
