#pragma once

#include <string>
#include <vector>

namespace cputrain::model {

/// What config.json of a .keras file says of a layer.
struct KerasConfigLayer {
  std::string group;  ///< where its arrays lie in HDF5: "layers/conv2d_1"
  std::string name;
  bool scale = true, center = true;  ///< batch normalization has a gamma, a beta
};

struct KerasConfig {
  /// In the network's order, those of networks within it included. Layers whose arrays we have no
  /// use for are left out.
  std::vector<KerasConfigLayer> layers{};
  bool rescales = false;  ///< has a layer Rescaling
};

/// Throws std::runtime_error.
KerasConfig keras_config(const std::string& json);

}  // namespace cputrain::model
