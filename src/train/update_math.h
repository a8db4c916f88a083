#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "train/update_rule.h"

/// The arithmetic of the update rules, one plain loop each, after tf.keras' OptimizerV2 (TensorFlow
/// 2.1 to 2.10). Header-only so that a backend can compile it for its own instruction sets.
namespace cputrain {

/// Pointers into equally long arrays; `state` as in UpdateSlice.
template <class T>
struct UpdatePointers {
  T* __restrict weights;
  const T* __restrict gradients;
  T* __restrict state[kMaxStateArrays];
  std::size_t size;
};

template <class T>
inline void update_math(const Sgd& rule, const UpdatePointers<T>& p, T rate, std::uint64_t) {
  const T momentum = static_cast<T>(rule.momentum);
  if (momentum == 0) {
    for (std::size_t i = 0; i < p.size; ++i) p.weights[i] -= rate * p.gradients[i];
    return;
  }
  T* __restrict velocity = p.state[0];
  if (rule.nesterov) {
    for (std::size_t i = 0; i < p.size; ++i) {
      velocity[i] = momentum * velocity[i] - rate * p.gradients[i];
      p.weights[i] += momentum * velocity[i] - rate * p.gradients[i];
    }
  } else {
    for (std::size_t i = 0; i < p.size; ++i) {
      velocity[i] = momentum * velocity[i] - rate * p.gradients[i];
      p.weights[i] += velocity[i];
    }
  }
}

/// Without momentum epsilon is added outside the root, with momentum inside: so does TF 2.1.
/// State: mean square; then, if centered, mean gradient; then, with momentum, the momentum.
template <class T>
inline void update_math(const RmsProp& rule, const UpdatePointers<T>& p, T rate, std::uint64_t) {
  const T rho = static_cast<T>(rule.rho), epsilon = static_cast<T>(rule.epsilon);
  const T momentum = static_cast<T>(rule.momentum);
  T* __restrict square = p.state[0];
  if (momentum == 0 && !rule.centered) {
    for (std::size_t i = 0; i < p.size; ++i) {
      const T g = p.gradients[i];
      square[i] = rho * square[i] + (1 - rho) * g * g;
      p.weights[i] -= rate * g / (std::sqrt(square[i]) + epsilon);
    }
    return;
  }
  T* mean = rule.centered ? p.state[1] : nullptr;
  T* moment = momentum > 0 ? p.state[rule.centered ? 2 : 1] : nullptr;
  for (std::size_t i = 0; i < p.size; ++i) {
    const T g = p.gradients[i];
    square[i] = rho * square[i] + (1 - rho) * g * g;
    if (mean) mean[i] = rho * mean[i] + (1 - rho) * g;
    // Steady gradients make both alike, and rounding must not push the difference below zero.
    const T variance = mean ? std::max(T{0}, square[i] - mean[i] * mean[i]) : square[i];
    if (moment) {
      moment[i] = momentum * moment[i] + rate * g / std::sqrt(variance + epsilon);
      p.weights[i] -= moment[i];
    } else {
      p.weights[i] -= rate * g / (std::sqrt(variance) + epsilon);
    }
  }
}

/// epsilon is Kingma and Ba's "epsilon hat": it is added before the bias correction's effect.
template <class T>
inline void update_math(const Adam& rule, const UpdatePointers<T>& p, T rate, std::uint64_t step) {
  const double t = static_cast<double>(step) + 1;
  const T alpha =
      static_cast<T>(static_cast<double>(rate) * std::sqrt(1 - std::pow(rule.beta2, t)) /
                     (1 - std::pow(rule.beta1, t)));
  const T keep1 = static_cast<T>(1 - rule.beta1), keep2 = static_cast<T>(1 - rule.beta2);
  const T epsilon = static_cast<T>(rule.epsilon);
  T* __restrict m = p.state[0];
  T* __restrict v = p.state[1];
  for (std::size_t i = 0; i < p.size; ++i) {
    const T g = p.gradients[i];
    m[i] += (g - m[i]) * keep1;
    v[i] += (g * g - v[i]) * keep2;
    p.weights[i] -= alpha * m[i] / (std::sqrt(v[i]) + epsilon);
  }
}

/// Decoupled weight decay, then the rule.
template <class T>
inline void update_elements(const UpdateRule& rule, const UpdatePointers<T>& p, double rate,
                            double weight_decay, std::uint64_t step) {
  if (weight_decay > 0) {
    const T keep = static_cast<T>(1 - rate * weight_decay);
    for (std::size_t i = 0; i < p.size; ++i) p.weights[i] *= keep;
  }
  std::visit([&](const auto& r) { update_math(r, p, static_cast<T>(rate), step); }, rule);
}

}  // namespace cputrain
