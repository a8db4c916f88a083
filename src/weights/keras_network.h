#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "weights/keras_pixels.h"
#include "weights/step_paths.h"

namespace cputrain::weights {

/// What config.json of a .keras file, or model_config of an older one, says of a network.
struct KerasNetwork {
  /// In the network's order, those of networks within it included. An activation that is an
  /// argument of a layer is a step behind it. What the configuration leaves open, or says of
  /// classes that are not Keras' own, is unknown.
  NetworkSteps steps{};
  int output = -1;  ///< which of them makes the answers; -1: not known
  /// Layers that are unknown since their classes or functions are not Keras' own.
  std::vector<std::string> not_compared{};
  KerasPixels pixels{};
  /// The images that its layers with weights get: what the network takes, or what a Resizing in
  /// front makes of them. Nothing where they may be of any size, or are no RGB.
  std::optional<Shape> image{};
  bool lists_layers = false;
};

/// Throws std::runtime_error for a text that cannot be read.
KerasNetwork read_keras_network(const std::string& config);

/// Nothing where a file has no configuration, or one that cannot be read.
std::optional<KerasNetwork> network_said_by(const std::string& config);

}  // namespace cputrain::weights
