#include "weights/keras_file.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

constexpr const char *kAttributes = "attributes", *kUnread = "unread", *kConfig = "config";

using nlohmann::json;

int side_of(const json& value) {
  constexpr std::int64_t kMost = 16384;
  if (!value.is_number_integer()) return 0;
  const auto side = value.get<std::int64_t>();
  return side >= 1 && side <= kMost ? static_cast<int>(side) : 0;
}

std::optional<Shape> image_of_sides(const json& height, const json& width) {
  const Shape image{side_of(height), side_of(width), 3};
  return image.height && image.width ? std::optional(image) : std::nullopt;
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

/// Appends the layers of a network, whose groups lie in `place`. `front`: no layer with weights
/// came yet. parse_strict_json bounds the depth.
void add_layers(const json& network, const std::string& place, bool& front, KerasConfig& result) {
  KerasGroups groups(place);
  for (const json& entry : keras_layers_of(network)) {
    const std::string kind = keras_text(keras_member(entry, "class_name"));
    if (front) {
      note_image(kind, keras_member(entry, "config"), result.image);
      note_keras_pixels(entry, result.pixels);
      front = !ends_keras_pixels(kind);
    }
    const std::optional<std::string> path = groups.next(kind);
    if (!path) continue;
    const json& config = keras_member(entry, "config");
    if (keras_layers_of(entry).is_array()) {
      add_layers(entry, *path + "/", front, result);
      continue;
    }
    result.layers.push_back({.group = *path,
                             .name = keras_text(keras_member(config, "name")),
                             .scale = keras_member(config, "scale") != json(false),
                             .center = keras_member(config, "center") != json(false)});
  }
}

}  // namespace

bool is_of_no_layer(std::string_view path) {
  const std::vector<std::string> parts = split(path, '/');
  return std::ranges::any_of(parts, [](const std::string& part) {
    return part == "optimizer" || part == "optimizer_weights" || part == "metrics" ||
           part.starts_with("seed_generator");
  });
}

ReadKeras read_once(ReadKeras read) {
  return [read = std::move(read),
          last = std::make_shared<std::optional<KerasFile>>()](const std::filesystem::path& path) {
    if (!*last || (*last)->path != path) last->emplace(read(path));
    return **last;
  };
}

safetensors::Metadata to_metadata(const KerasTexts& texts) {
  return {{kAttributes, json_text(nlohmann::json(texts.attributes))},
          {kUnread, json_text(nlohmann::json(texts.unread))},
          {kConfig, texts.config}};
}

KerasTexts keras_texts(const safetensors::Metadata& metadata) {
  try {
    KerasTexts texts;
    parse_strict_json(metadata.at(kAttributes)).get_to(texts.attributes);
    parse_strict_json(metadata.at(kUnread)).get_to(texts.unread);
    texts.config = metadata.at(kConfig);
    return texts;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("has texts that make no sense: ") + error.what());
  }
}

KerasConfig keras_config(const std::string& text) {
  KerasConfig result;
  const json network = parse_strict_json(text);
  bool front = true;
  add_layers(network, "", front, result);
  // A network that is a class of its own says it beside its layers, if at all.
  if (!result.image) {
    result.image =
        image_of_shape(keras_member(keras_member(network, "build_config"), "input_shape"));
  }
  return result;
}

bool has_keras_config(const std::string& text) {
  try {
    return !text.empty() && keras_layers_of(parse_strict_json(text)).is_array();
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::optional<Shape> keras_image(const std::string& text) {
  try {
    return text.empty() ? std::nullopt : keras_config(text).image;
  } catch (const std::runtime_error&) {
    return {};
  }
}

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

}  // namespace cputrain::weights
