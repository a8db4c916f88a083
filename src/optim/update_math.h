#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "optim/update_rule.h"

/// The arithmetic of the update rules and of what comes before them, one plain loop each, after
/// tf.keras' OptimizerV2 (TensorFlow 2.1 to 2.10). Header-only so that a backend can compile it for
/// its own instruction sets.
namespace cputrain::optim {

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

/// `rate` is the layer's own, and decay is in the gradients.
template <class T>
inline void update_math(const Lars& rule, const UpdatePointers<T>& p, T rate, std::uint64_t step) {
  update_math(Sgd{.momentum = rule.momentum}, p, rate, step);
}

/// The gradients are directions already (LambDirection), `rate` is the layer's own.
template <class T>
inline void update_math(const Lamb&, const UpdatePointers<T>& p, T rate, std::uint64_t step) {
  update_math(Sgd{}, p, rate, step);
}

/// Pointers into equally long arrays; `gradients` are changed, `state` is as in UpdateSlice.
template <class T>
struct GradientPointers {
  const T* __restrict weights;
  T* __restrict gradients;
  T* __restrict state[kMaxStateArrays];
  std::size_t size;
};

template <class T>
inline void gradient_math(const AddWeights& add, const GradientPointers<T>& p, std::uint64_t) {
  const T factor = static_cast<T>(add.factor);
  for (std::size_t i = 0; i < p.size; ++i) p.gradients[i] += factor * p.weights[i];
}

/// A gradient that is no number stays so: the run must end, not go on with the limit.
template <class T>
inline void gradient_math(const ClipValues& clip, const GradientPointers<T>& p, std::uint64_t) {
  const T limit = static_cast<T>(clip.limit);
  for (std::size_t i = 0; i < p.size; ++i) {
    const T g = p.gradients[i];
    p.gradients[i] = g > limit ? limit : g < -limit ? -limit : g;
  }
}

template <class T>
inline void gradient_math(const ScaleGradients& scale, const GradientPointers<T>& p,
                          std::uint64_t) {
  const T factor = static_cast<T>(scale.factor);
  for (std::size_t i = 0; i < p.size; ++i) p.gradients[i] *= factor;
}

template <class T>
inline void gradient_math(const LambDirection& lamb, const GradientPointers<T>& p,
                          std::uint64_t step) {
  const double t = static_cast<double>(step) + 1;
  const T correct1 = static_cast<T>(1 / (1 - std::pow(lamb.rule.beta1, t)));
  const T correct2 = static_cast<T>(1 / (1 - std::pow(lamb.rule.beta2, t)));
  const T keep1 = static_cast<T>(1 - lamb.rule.beta1), keep2 = static_cast<T>(1 - lamb.rule.beta2);
  const T epsilon = static_cast<T>(lamb.rule.epsilon), decay = static_cast<T>(lamb.decay);
  T* __restrict m = p.state[0];
  T* __restrict v = p.state[1];
  for (std::size_t i = 0; i < p.size; ++i) {
    const T g = p.gradients[i];
    m[i] += (g - m[i]) * keep1;
    v[i] += (g * g - v[i]) * keep2;
    p.gradients[i] =
        correct1 * m[i] / (std::sqrt(correct2 * v[i]) + epsilon) + decay * p.weights[i];
  }
}

/// Sums of squares of blocks of this many elements are formed first, whoever computes them, so that
/// their sum has the same bits at any number of threads.
inline constexpr std::size_t kNormBlock = 4096;

/// Blocks that `size` elements from `position` of the arena on touch.
inline std::size_t norm_blocks(std::size_t position, std::size_t size) {
  return size == 0 ? 0 : (position + size - 1) / kNormBlock - position / kNormBlock + 1;
}

/// What lies in block i of those, counted from the first: blocks begin at multiples of kNormBlock
/// of the arena, so that their sums are the same whatever part of it a rank owns.
template <class T>
inline std::span<T> norm_block(std::span<T> values, std::size_t position, std::size_t i) {
  const std::size_t first = position / kNormBlock + i;
  const std::size_t begin = std::max(position, first * kNormBlock) - position;
  const std::size_t end = std::min(values.size(), (first + 1) * kNormBlock - position);
  return values.subspan(begin, end - begin);
}

template <class T>
inline double block_sum_of_squares(const T* values, std::size_t n) {
  constexpr std::size_t kChains = 8;  // independent sums, so that they can be vectorised
  double sums[kChains] = {};
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(values[i]);
    sums[i % kChains] += x * x;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
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

}  // namespace cputrain::optim
