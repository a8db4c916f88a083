#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"

namespace cputrain::model {

/// What config.json of a .keras file, or model_config of an older one, says of a layer.
struct KerasConfigLayer {
  std::string group;  ///< where its arrays lie in HDF5: "layers/conv2d_1"
  std::string name;
  bool scale = true, center = true;  ///< batch normalization has a gamma, a beta
};

/// A layer Rescaling: pixel * scale + offset.
struct KerasRescaling {
  std::optional<double> scale;  ///< nothing where the two are not plain numbers
  double offset = 0;
};

struct KerasConfig {
  /// In the network's order, those of networks within it included. Layers whose arrays we have no
  /// use for are left out.
  std::vector<KerasConfigLayer> layers{};
  std::vector<KerasRescaling> rescalings{};
  /// The images that its layers with weights get: what the network takes, or what a layer within it
  /// (Resizing, CenterCrop) makes of them. Nothing where they may be of any size, or are no RGB.
  std::optional<Shape> image{};
};

/// Throws std::runtime_error.
KerasConfig keras_config(const std::string& json);

/// The same member of a file's configuration; nothing where it has none that can be read.
std::optional<Shape> keras_image(const std::string& json);

}  // namespace cputrain::model
