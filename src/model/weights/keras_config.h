#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "model/weights/keras_pixels.h"

namespace cputrain::model {

/// What config.json of a .keras file, or model_config of an older one, says of a layer.
struct KerasConfigLayer {
  std::string group;  ///< where its arrays lie in HDF5: "layers/conv2d_1"
  std::string name;
  bool scale = true, center = true;  ///< batch normalization has a gamma, a beta
};

struct KerasConfig {
  /// In the network's order, those of networks within it included. Layers whose arrays we have no
  /// use for are left out.
  std::vector<KerasConfigLayer> layers{};
  KerasPixels pixels{};
  /// The images that its layers with weights get: what the network takes, or what a Resizing in
  /// front makes of them. Nothing where they may be of any size, or are no RGB.
  std::optional<Shape> image{};
};

/// Throws std::runtime_error.
KerasConfig keras_config(const std::string& json);

/// Whether a file has a configuration that can be read.
bool has_keras_config(const std::string& json);

/// The same member of a file's configuration; nothing where it has none that can be read.
std::optional<Shape> keras_image(const std::string& json);

}  // namespace cputrain::model
