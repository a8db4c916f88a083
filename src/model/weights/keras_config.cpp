#include "model/weights/keras_config.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/strict_json.h"
#include "model/weights/keras_json.h"

namespace cputrain::model {
namespace {

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

}  // namespace cputrain::model
