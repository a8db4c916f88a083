#pragma once

#include <string>

#include "weights/step_paths.h"

namespace cputrain::weights {

struct KerasSteps {
  NetworkSteps steps{};
  int output = -1;  ///< which of them makes the answers; -1: not known
  /// Layers that are unknown since their classes or functions are not Keras' own.
  std::vector<std::string> not_compared{};
};

/// What the configuration of a Keras file says of its layers, those of networks within it included.
/// An activation that is an argument of a layer is a step behind it. What the configuration leaves
/// open, or says of classes that are not Keras' own, is unknown. Throws std::runtime_error for text
/// that cannot be read.
KerasSteps keras_steps(const std::string& json);

}  // namespace cputrain::weights
