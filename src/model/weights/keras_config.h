#pragma once

#include <optional>
#include <string>
#include <vector>

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
};

/// Throws std::runtime_error.
KerasConfig keras_config(const std::string& json);

}  // namespace cputrain::model
