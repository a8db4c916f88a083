#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/array.h"

/// Keras' update rules (tf.keras OptimizerV2 of TensorFlow 2.1 to 2.10) as data. The formulas are
/// in update_math.h. State starts at zero.
namespace cputrain {

struct Sgd {
  double momentum = 0.0;
  bool nesterov = false;
};

struct RmsProp {
  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
  bool centered = false;
};

struct Adam {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
};

using UpdateRule = std::variant<Sgd, RmsProp, Adam>;

/// Arrays of state, each as long as the weights, that the rule keeps: 0 to 3.
int state_arrays(const UpdateRule&);
/// "sgd", "rmsprop" or "adam".
std::string_view rule_name(const UpdateRule&);
/// Keras' default: 0.01 for SGD, else 0.001.
double default_learning_rate(const UpdateRule&);

inline constexpr int kMaxStateArrays = 3;

/// One slice of the arenas, and the figures of this step.
struct UpdateSlice {
  Array weights, gradients;
  std::array<Array, kMaxStateArrays> state;  ///< the first state_arrays(rule) of them are used
  double learning_rate = 0;
  double weight_decay = 0;  ///< decoupled, as Keras' argument: w -= learning_rate * decay * w
  std::uint64_t step = 0;   ///< counts from 0
};

}  // namespace cputrain
