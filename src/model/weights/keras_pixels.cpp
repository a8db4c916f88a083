#include "model/weights/keras_pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "model/weights/keras_config.h"

namespace cputrain::model {
namespace {

using nlohmann::json;
using Colours = std::array<double, 3>;

/// A number, or one for each colour, in lists of one entry and what Keras makes of NumPy's arrays.
std::optional<Colours> colours_in(const json& value) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    return Colours{number, number, number};
  }
  if (value.is_object()) return colours_in(keras_member(keras_member(value, "config"), "value"));
  if (!value.is_array() || value.empty()) return {};
  if (value.size() == 1) return colours_in(value.front());
  const bool numbers = std::ranges::all_of(value, [](const json& one) { return one.is_number(); });
  if (value.size() != 3 || !numbers) return {};
  return Colours{value[0].get<double>(), value[1].get<double>(), value[2].get<double>()};
}

std::optional<KerasScaling> given_rescaling(const json& config) {
  const auto scale = colours_in(keras_member(config, "scale"));
  const json& said = keras_member(config, "offset");
  const auto offset = said.is_null() ? Colours{} : colours_in(said);
  if (!scale || !offset) return {};
  return KerasScaling{*scale, *offset};
}

/// Whether the numbers are those of colours, or one for all.
bool is_of_colours(const json& axis) {
  if (axis.is_array()) return axis.size() == 1 && is_of_colours(axis.front());
  return axis.is_null() || axis == json(-1) || axis == json(3);
}

/// Numbers may be given to its constructor; those that it learnt by adapt() are arrays.
std::optional<KerasScaling> given_normalization(const json& config) {
  constexpr double kLeast = 1e-7;  // Keras' epsilon
  const auto mean = colours_in(keras_member(config, "mean"));
  const auto variance = colours_in(keras_member(config, "variance"));
  if (!mean || !variance || !is_of_colours(keras_member(config, "axis"))) return {};
  const bool turned = keras_member(config, "invert") == json(true);
  KerasScaling result;
  for (int colour = 0; colour < 3; ++colour) {
    const double deviation = std::max(std::sqrt((*variance)[colour]), kLeast);
    if (!std::isfinite(deviation)) return {};
    result.scale[colour] = turned ? deviation : 1 / deviation;
    result.offset[colour] = turned ? (*mean)[colour] : -(*mean)[colour] / deviation;
  }
  return result;
}

std::optional<KerasScaling> scaling_of(const std::string& kind, const json& config) {
  if (kind == "Rescaling") return given_rescaling(config);
  return kind == "Normalization" ? given_normalization(config) : std::nullopt;
}

std::string crop_text(const std::string& kind, const json& config) {
  const json &height = keras_member(config, "height"), &width = keras_member(config, "width");
  if (!height.is_number_integer() || !width.is_number_integer()) return kind;
  return fmt::format("{} to {}x{}", kind, height.get<std::int64_t>(), width.get<std::int64_t>());
}

}  // namespace

std::optional<KerasScaling> KerasPixels::scaling() const {
  KerasScaling all;
  for (const KerasPixelLayer& layer : layers) {
    if (!layer.scaling) return {};
    for (int colour = 0; colour < 3; ++colour) {
      const double scale = layer.scaling->scale[colour], offset = layer.scaling->offset[colour];
      all.scale[colour] *= scale;
      all.offset[colour] = all.offset[colour] * scale + offset;
    }
  }
  return all;
}

void note_keras_pixels(const json& entry, KerasPixels& pixels) {
  static const std::set<std::string> crops{"CenterCrop", "RandomCrop", "Cropping2D"};
  const std::string kind = keras_text(keras_member(entry, "class_name"));
  const json& config = keras_member(entry, "config");
  if (crops.contains(kind)) pixels.crops.push_back(crop_text(kind, config));
  if (kind == "Rescaling" || kind == "Normalization" || is_keras_operation(entry)) {
    pixels.layers.push_back({kind, scaling_of(kind, config)});
  }
}

bool ends_keras_pixels(const std::string& class_name) {
  static const std::set<std::string> words{
      "Conv2D", "DepthwiseConv2D", "SeparableConv2D",    "Conv2DTranspose",
      "Dense",  "EinsumDense",     "BatchNormalization", "LayerNormalization",
      "PReLU",  "Embedding",       "GroupNormalization"};
  return words.contains(class_name);
}

bool keeps_numbers(const std::string& class_name, const json& config) {
  const auto scaling = scaling_of(class_name, config);
  return scaling && scaling->scale == Colours{1, 1, 1} && scaling->offset == Colours{};
}

}  // namespace cputrain::model
