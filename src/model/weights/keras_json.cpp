#include "model/weights/keras_json.h"

#include <nlohmann/json.hpp>

namespace cputrain::model {

using nlohmann::json;

const json& keras_member(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string keras_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Keras 2 had at first no more than the list for a Sequential.
const json& keras_layers_of(const json& network) {
  const json& config = keras_member(network, "config");
  return config.is_array() ? config : keras_member(config, "layers");
}

bool is_keras_operation(const json& entry) {
  const std::string kind = keras_text(keras_member(entry, "class_name"));
  const std::string module = keras_text(keras_member(entry, "module"));
  return kind == "Lambda" || kind == "TFOpLambda" || kind == "SlicingOpLambda" ||
         (says_keras_class(entry) && module.find(".ops.") != std::string::npos);
}

bool says_keras_class(const json& entry) {
  const std::string module = keras_text(keras_member(entry, "module"));
  return module.starts_with("keras.") || module.starts_with("tf_keras.");
}

std::optional<std::string> KerasGroups::next(const std::string& class_name) {
  static const std::map<std::string, std::string> words{
      {"Conv2D", "conv2d"},
      {"DepthwiseConv2D", "depthwise_conv2d"},
      {"Dense", "dense"},
      {"BatchNormalization", "batch_normalization"},
      {"Functional", "functional"},
      {"Sequential", "sequential"},
      {"Model", "model"}};
  const auto word = words.find(class_name);
  if (word == words.end()) return {};
  const int number = counts_[word->second]++;
  return place_ + "layers/" + word->second + (number ? "_" + std::to_string(number) : "");
}

}  // namespace cputrain::model
