#pragma once

#include <map>
#include <string>
#include <vector>

namespace cputrain::model {

/// What config.json of a .keras file says of a layer.
struct KerasConfigLayer {
  std::string group;  ///< where its arrays lie in HDF5: "layers/conv2d_1"
  std::string name;
  bool scale = true, center = true;  ///< batch normalization has a gamma, a beta
};

/// Layers of a network in their order, those of networks within it included. Layers whose arrays we
/// have no use for are left out. Throws std::runtime_error.
std::vector<KerasConfigLayer> keras_config_layers(const std::string& json);

}  // namespace cputrain::model
