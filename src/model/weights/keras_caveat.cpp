#include "model/weights/keras_caveat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "model/normalization.h"

namespace cputrain::model {
namespace {

bool has_layer(const KerasLayers& file, const char* name) {
  return std::ranges::any_of(file.layers, [&](const auto& layer) { return layer.name == name; });
}

bool does_the_same(const KerasScaling& theirs, const Input& ours) {
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
  for (const std::string& word : normalization_words()) {
    if (does_the_same(scaling, parse_normalization(word))) return "--normalize " + word;
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

/// Empty where the only thing that the network does with pixels is done here, too.
std::string caveat_of_own_numbers(const KerasLayers& file, const Input& input) {
  const std::string does = "its network makes numbers of pixels by itself";
  const std::string must = "which --normalize must say here";
  if (!file.of_pixels.empty()) {
    return fmt::format("{} ({}), {}", does, first_few(file.of_pixels, 2), must);
  }
  if (file.pixels.layers.empty()) return "";
  std::vector<std::string> kinds;
  for (const KerasPixelLayer& layer : file.pixels.layers) kinds.push_back(printable(layer.kind));
  const auto scaling = file.pixels.scaling();
  if (!scaling) return fmt::format("{} ({}), {}", does, first_few(kinds), must);
  if (does_the_same(*scaling, input)) return "";
  const std::string flag = flag_of(*scaling);
  return fmt::format("{} ({}: {}), {}{}", does, join(kinds, ", "), scaling_text(*scaling), must,
                     flag.empty() ? flag_behind_unit(*scaling) : ": " + flag);
}

std::string caveat_of_crops(const KerasPixels& pixels) {
  if (pixels.crops.empty()) return "";
  return fmt::format(
      "its network cuts images by itself ({}), which none here does (its answers are for the part "
      "within); "
      "--image-size and --fit crop come close",
      first_few(pixels.crops));
}

}  // namespace

std::string keras_caveat(const KerasLayers& file, const Input& input) {
  std::vector<std::string> caveats;
  if (auto own = caveat_of_own_numbers(file, input); !own.empty()) caveats.push_back(own);
  if (auto crops = caveat_of_crops(file.pixels); !crops.empty()) caveats.push_back(crops);
  if (has_layer(file, "block1_conv1")) {
    caveats.push_back(
        "its layers are called as those of Keras' VGG networks, whose published weights learnt "
        "from pixels in the order BGR, which no flag says here");
  }
  const bool says_nothing = file.of_pixels.empty() && file.pixels.layers.empty();
  if (says_nothing && has_layer(file, "conv1_conv") && has_layer(file, "post_bn") &&
      input != parse_normalization("symmetric")) {
    caveats.push_back(
        "its layers are called as those of Keras' ResNetV2 networks, whose published weights "
        "learnt from pixels from -1 to 1: --normalize symmetric");
  }
  return join(caveats, "; ");
}

}  // namespace cputrain::model
