#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/layer.h"

namespace cputrain::weights {

struct KerasLayers;

/// What a layer makes of pixels: pixel * scale + offset, for each colour.
struct KerasScaling {
  std::array<double, 3> scale{1, 1, 1}, offset{};
};

/// A layer in front of all weights that changes the numbers of pixels.
struct KerasPixelLayer {
  std::string kind;                       ///< "Rescaling"
  std::optional<KerasScaling> scaling{};  ///< nothing where the configuration has no such numbers
};

/// What a network does with images in front of its first layer with weights.
struct KerasPixels {
  std::vector<KerasPixelLayer> layers{};
  std::vector<std::string> crops{};  ///< "CenterCrop to 224x224"

  /// All layers together; nothing where one of them says no numbers.
  std::optional<KerasScaling> scaling() const;
};

/// Notes what a layer in front of all weights does, if anything.
void note_keras_pixels(const nlohmann::json& entry, KerasPixels& pixels);

/// Whether a layer has weights that Keras learns, so that what comes behind it gets no pixels.
bool ends_keras_pixels(const std::string& class_name);

/// Whether a layer of Rescaling or Normalization gives back what it gets.
bool keeps_numbers(const std::string& class_name, const nlohmann::json& config);

/// What people should know of the pixels that the network of the file learnt from; empty where
/// `input`, what becomes of pixels here, is what its layers say, or where nothing tells.
std::string keras_caveat(const KerasLayers&, const model::Input& input);

}  // namespace cputrain::weights
