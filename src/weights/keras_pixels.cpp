#include "weights/keras_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text.h"
#include "model/normalization.h"

namespace cputrain::weights {
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

bool has_layer(const KerasLayers& file, const char* name) {
  return std::ranges::any_of(file.layers, [&](const auto& layer) { return layer.name == name; });
}

bool does_the_same(const KerasScaling& theirs, const model::Input& ours) {
  for (int colour = 0; colour < 3; ++colour) {
    const double scale = ours.scale.of[colour], offset = ours.offset.of[colour];
    if (!(std::abs(theirs.scale[colour] - scale) <= 1e-4 * std::abs(scale))) return false;
    if (!(std::abs(theirs.offset[colour] - offset) <= 1e-4)) return false;
  }
  return true;
}

/// Six digits of each colour, or one number where all have the same.
std::string colours_text(const std::array<double, 3>& values, const char* separator) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(fmt::format("{:.6g}", value));
  const bool same = texts[0] == texts[1] && texts[0] == texts[2];
  return same ? texts[0] : join(texts, separator);
}

std::string word_flag_of(const KerasScaling& scaling) {
  for (const std::string& word : model::normalization_words()) {
    if (does_the_same(scaling, model::parse_normalization(word))) return "--normalize " + word;
  }
  return "";
}

/// The flag that does the same; empty where it cannot.
std::string flag_of(const KerasScaling& scaling) {
  if (auto flag = word_flag_of(scaling); !flag.empty()) return flag;
  std::array<double, 3> means{}, deviations{};
  for (int colour = 0; colour < 3; ++colour) {
    const double deviation = 1 / (255 * scaling.scale[colour]);
    const double mean = -scaling.offset[colour] * deviation;
    if (!(deviation >= 1e-3 && deviation <= 1e3 && mean >= 0 && mean <= 1)) return "";
    means[colour] = std::abs(mean);
    deviations[colour] = deviation;
  }
  return fmt::format("--normalize {}/{}", colours_text(means, ","), colours_text(deviations, ","));
}

/// People may have divided pixels by 255 before the network, where its file says nothing of it.
std::string flag_behind_unit(KerasScaling scaling) {
  for (double& scale : scaling.scale) scale /= 255;
  const std::string flag = word_flag_of(scaling);
  return flag.empty() ? "" : fmt::format(" ({} if it got pixels from 0 to 1)", flag);
}

std::string scaling_text(const KerasScaling& scaling) {
  const auto colours = [](const auto& values) {
    const std::string text = colours_text(values, ", ");
    return text.find(',') == std::string::npos ? text : "(" + text + ")";
  };
  return fmt::format("x * {} + {}", colours(scaling.scale), colours(scaling.offset));
}

/// Both layers, one behind the other; nothing where one of them says no numbers.
std::optional<KerasScaling> both(std::optional<KerasScaling> before,
                                 const std::optional<KerasScaling>& layer) {
  if (!before || !layer) return {};
  for (int colour = 0; colour < 3; ++colour) {
    const double scale = layer->scale[colour], offset = layer->offset[colour];
    before->scale[colour] *= scale;
    before->offset[colour] = before->offset[colour] * scale + offset;
  }
  return before;
}

/// Empty where the only thing that the network does with pixels is done here, too.
std::string caveat_of_own_numbers(const KerasLayers& file, const model::Input& input) {
  const std::string does = "its network makes numbers of pixels by itself";
  const std::string must = "which --normalize must say here";
  if (!file.of_pixels.empty()) {
    return fmt::format("{} ({}), {}", does, first_few(file.of_pixels, 2), must);
  }
  if (file.network.pixel_layers.empty()) return "";
  std::vector<std::string> kinds;
  for (const std::string& kind : file.network.pixel_layers) kinds.push_back(printable(kind));
  const auto& scaling = file.network.pixel_scaling;
  if (!scaling) return fmt::format("{} ({}), {}", does, first_few(kinds), must);
  if (does_the_same(*scaling, input)) return "";
  const std::string flag = flag_of(*scaling);
  return fmt::format("{} ({}: {}), {}{}", does, join(kinds, ", "), scaling_text(*scaling), must,
                     flag.empty() ? flag_behind_unit(*scaling) : ": " + flag);
}

std::string caveat_of_crops(const KerasNetwork& network) {
  if (network.crops.empty()) return "";
  return fmt::format(
      "its network cuts images by itself ({}), which none here does (its answers are for the part "
      "within); "
      "--image-size and --fit crop come close",
      first_few(network.crops));
}

}  // namespace

void note_keras_pixels(const json& entry, KerasNetwork& network) {
  static const std::set<std::string> crops{"CenterCrop", "RandomCrop", "Cropping2D"};
  const std::string kind = keras_text(keras_member(entry, "class_name"));
  const json& config = keras_member(entry, "config");
  if (crops.contains(kind)) network.crops.push_back(crop_text(kind, config));
  if (kind == "Rescaling" || kind == "Normalization" || is_keras_operation(entry)) {
    network.pixel_layers.push_back(kind);
    network.pixel_scaling = both(network.pixel_scaling, scaling_of(kind, config));
  }
}

bool ends_keras_pixels(const std::string& class_name) {
  static const std::set<std::string> words{"SeparableConv2D", "Conv2DTranspose",
                                           "EinsumDense",     "PReLU",
                                           "Embedding",       "GroupNormalization"};
  return kind_of_keras_class(class_name) != KerasKind::other || words.contains(class_name);
}

bool keeps_numbers(const std::string& class_name, const json& config) {
  const auto scaling = scaling_of(class_name, config);
  return scaling && scaling->scale == Colours{1, 1, 1} && scaling->offset == Colours{};
}

std::string keras_caveat(const KerasLayers& file, const model::Input& input) {
  std::vector<std::string> caveats;
  if (auto own = caveat_of_own_numbers(file, input); !own.empty()) caveats.push_back(own);
  if (auto crops = caveat_of_crops(file.network); !crops.empty()) caveats.push_back(crops);
  if (has_layer(file, "block1_conv1")) {
    caveats.push_back(
        "its layers are called as those of Keras' VGG networks, whose published weights learnt "
        "from pixels in the order BGR, which no flag says here");
  }
  const bool says_nothing = file.of_pixels.empty() && file.network.pixel_layers.empty();
  if (says_nothing && has_layer(file, "conv1_conv") && has_layer(file, "post_bn") &&
      input != model::parse_normalization("symmetric")) {
    caveats.push_back(
        "its layers are called as those of Keras' ResNetV2 networks, whose published weights "
        "learnt from pixels from -1 to 1: --normalize symmetric");
  }
  return join(caveats, "; ");
}

}  // namespace cputrain::weights
