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

bool does_the_same(const KerasRescaling& theirs, const Input& ours) {
  if (!theirs.scale) return false;
  for (int colour = 0; colour < 3; ++colour) {
    const double scale = ours.scale.of[colour], offset = ours.offset.of[colour];
    if (!(std::abs(*theirs.scale - scale) <= 1e-4 * std::abs(scale))) return false;
    if (!(std::abs(theirs.offset - offset) <= 1e-4)) return false;
  }
  return true;
}

/// The flag that does the same; empty where it cannot.
std::string flag_of(const KerasRescaling& rescaling) {
  for (const std::string& word : normalization_words()) {
    if (does_the_same(rescaling, parse_normalization(word))) return "--normalize " + word;
  }
  const double deviation = 1 / (255 * *rescaling.scale), mean = -rescaling.offset * deviation;
  if (!(deviation >= 1e-3 && deviation <= 1e3 && mean >= 0 && mean <= 1)) return "";
  return fmt::format("--normalize {:.6g}/{:.6g}", std::abs(mean), deviation);
}

/// Empty where the only thing that the network does with pixels is done here, too.
std::string caveat_of_own_numbers(const KerasLayers& file, const Input& input) {
  const std::string does = "its network makes numbers of pixels by itself";
  const std::string must = "which --normalize must say here";
  if (!file.of_pixels.empty()) {
    return fmt::format("{} ({}), {}", does, first_few(file.of_pixels, 2), must);
  }
  if (file.rescalings.empty()) return "";
  const KerasRescaling& first = file.rescalings.front();
  if (file.rescalings.size() > 1 || !first.scale) {
    return fmt::format("{} (Rescaling), {}", does, must);
  }
  if (does_the_same(first, input)) return "";
  const std::string flag = flag_of(first);
  return fmt::format("{} (Rescaling: x * {:.6g} + {:.6g}), {}{}", does, *first.scale, first.offset,
                     must, flag.empty() ? "" : ": " + flag);
}

}  // namespace

std::string keras_caveat(const KerasLayers& file, const Input& input) {
  std::vector<std::string> caveats;
  if (auto own = caveat_of_own_numbers(file, input); !own.empty()) caveats.push_back(own);
  if (has_layer(file, "block1_conv1")) {
    caveats.push_back(
        "its layers are called as those of Keras' VGG networks, whose published weights learnt "
        "from pixels in the order BGR, which no flag says here");
  }
  const bool says_nothing = file.of_pixels.empty() && file.rescalings.empty();
  if (says_nothing && has_layer(file, "conv1_conv") && has_layer(file, "post_bn") &&
      input != parse_normalization("symmetric")) {
    caveats.push_back(
        "its layers are called as those of Keras' ResNetV2 networks, whose published weights "
        "learnt from pixels from -1 to 1: --normalize symmetric");
  }
  return join(caveats, "; ");
}

}  // namespace cputrain::model
