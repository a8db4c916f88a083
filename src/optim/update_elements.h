#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/array.h"
#include "core/host_device.h"
#include "optim/update_rule.h"

/// What the update rules and the operations on gradients do to one element, after tf.keras'
/// OptimizerV2 (TensorFlow 2.1 to 2.10): the arithmetic that the host's loops (update_math.h)
/// and a GPU's kernels share. Each is a function object that holds the step's figures, worked out
/// in double on the host; with_update() and with_change() choose it. `kStates` is how many state
/// arrays it works on, in the order of UpdateSlice.
namespace cputrain::optim {

template <class T>
struct SgdElement {
  static constexpr int kStates = 0;
  T rate;
  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T gradient) const { weight -= rate * gradient; }
};

template <class T, bool kNesterov>
struct MomentumElement {
  static constexpr int kStates = 1;
  T rate, momentum;
  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T gradient, T& velocity) const {
    velocity = momentum * velocity - rate * gradient;
    if constexpr (kNesterov) {
      weight += momentum * velocity - rate * gradient;
    } else {
      weight += velocity;
    }
  }
};

/// Without momentum epsilon is added outside the root, with momentum inside: so does TF 2.1.
/// State: mean square; then, if centered, mean gradient; then, with momentum, the momentum.
template <class T, bool kCentered, bool kMomentum>
struct RmsPropElement {
  static constexpr int kStates = 1 + kCentered + kMomentum;
  T rate, rho, epsilon, momentum;

  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T g, T& square) const {
    add_square(g, square);
    take_step(weight, g, square);
  }
  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T g, T& square, T& other) const {
    add_square(g, square);
    if constexpr (kCentered) {
      take_step(weight, g, variance(g, square, other));
    } else {
      take_momentum_step(weight, g, square, other);
    }
  }
  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T g, T& square, T& mean, T& moment) const {
    add_square(g, square);
    take_momentum_step(weight, g, variance(g, square, mean), moment);
  }

 private:
  CPUTRAIN_HOST_DEVICE void add_square(T g, T& square) const {
    square = rho * square + (1 - rho) * g * g;
  }
  CPUTRAIN_HOST_DEVICE T variance(T g, T square, T& mean) const {
    mean = rho * mean + (1 - rho) * g;
    // Steady gradients make both alike, and rounding must not push the difference below zero.
    const T difference = square - mean * mean;
    return T{0} < difference ? difference : T{0};
  }
  CPUTRAIN_HOST_DEVICE void take_step(T& weight, T g, T of_square) const {
    weight -= rate * g / (std::sqrt(of_square) + epsilon);
  }
  CPUTRAIN_HOST_DEVICE void take_momentum_step(T& weight, T g, T of_square, T& moment) const {
    moment = momentum * moment + rate * g / std::sqrt(of_square + epsilon);
    weight -= moment;
  }
};

/// Adam's moments: m and v are those of the gradient and of its square.
template <class T>
struct Moments {
  T keep1, keep2;
  CPUTRAIN_HOST_DEVICE void operator()(T g, T& m, T& v) const {
    m += (g - m) * keep1;
    v += (g * g - v) * keep2;
  }
};

/// epsilon is Kingma and Ba's "epsilon hat": it is added before the bias correction's effect.
template <class T>
struct AdamElement {
  static constexpr int kStates = 2;
  Moments<T> moments;
  T alpha, epsilon;
  CPUTRAIN_HOST_DEVICE void operator()(T& weight, T gradient, T& m, T& v) const {
    moments(gradient, m, v);
    weight -= alpha * m / (std::sqrt(v) + epsilon);
  }
};

template <class T>
struct AddWeightsElement {
  static constexpr int kStates = 0;
  T factor;
  CPUTRAIN_HOST_DEVICE void operator()(T weight, T& gradient) const { gradient += factor * weight; }
};

/// A gradient that is NaN stays NaN: the run must end, not go on with the limit.
template <class T>
struct ClipElement {
  static constexpr int kStates = 0;
  T limit;
  CPUTRAIN_HOST_DEVICE void operator()(T, T& gradient) const {
    gradient = gradient > limit ? limit : gradient < -limit ? -limit : gradient;
  }
};

template <class T>
struct ScaleElement {
  static constexpr int kStates = 0;
  T factor;
  CPUTRAIN_HOST_DEVICE void operator()(T, T& gradient) const { gradient *= factor; }
};

/// As a step towards the weight, whose rounding is small where both are nearly alike.
template <class T>
struct AverageElement {
  static constexpr int kStates = 0;
  T part;
  CPUTRAIN_HOST_DEVICE void operator()(T weight, T& average) const {
    average += part * (weight - average);
  }
};

template <class T>
struct LambElement {
  static constexpr int kStates = 2;
  Moments<T> moments;
  T correct1, correct2, epsilon, decay;
  CPUTRAIN_HOST_DEVICE void operator()(T weight, T& gradient, T& m, T& v) const {
    moments(gradient, m, v);
    gradient = correct1 * m / (std::sqrt(correct2 * v) + epsilon) + decay * weight;
  }
};

/// Calls f with the function object of this rule, rate and step (which counts from 0).
template <class T, class F>
inline void with_update(const Sgd& rule, T rate, std::uint64_t, F f) {
  const T momentum = static_cast<T>(rule.momentum);
  if (momentum == 0) {
    f(SgdElement<T>{rate});
  } else if (rule.nesterov) {
    f(MomentumElement<T, true>{rate, momentum});
  } else {
    f(MomentumElement<T, false>{rate, momentum});
  }
}

template <class T, class F>
inline void with_update(const RmsProp& rule, T rate, std::uint64_t, F f) {
  const T rho = static_cast<T>(rule.rho), epsilon = static_cast<T>(rule.epsilon);
  const T momentum = static_cast<T>(rule.momentum);
  if (rule.centered && momentum > 0) {
    f(RmsPropElement<T, true, true>{rate, rho, epsilon, momentum});
  } else if (rule.centered) {
    f(RmsPropElement<T, true, false>{rate, rho, epsilon, momentum});
  } else if (momentum > 0) {
    f(RmsPropElement<T, false, true>{rate, rho, epsilon, momentum});
  } else {
    f(RmsPropElement<T, false, false>{rate, rho, epsilon, momentum});
  }
}

template <class T, class F>
inline void with_update(const Adam& rule, T rate, std::uint64_t step, F f) {
  const double t = static_cast<double>(step) + 1;
  const T alpha =
      static_cast<T>(static_cast<double>(rate) * std::sqrt(1 - std::pow(rule.beta2, t)) /
                     (1 - std::pow(rule.beta1, t)));
  const Moments<T> moments{static_cast<T>(1 - rule.beta1), static_cast<T>(1 - rule.beta2)};
  f(AdamElement<T>{moments, alpha, static_cast<T>(rule.epsilon)});
}

/// `rate` is the layer's own, and decay is in the gradients.
template <class T, class F>
inline void with_update(const Lars& rule, T rate, std::uint64_t step, F f) {
  with_update(Sgd{.momentum = rule.momentum}, rate, step, f);
}

/// The gradients are directions already (LambDirection), `rate` is the layer's own.
template <class T, class F>
inline void with_update(const Lamb&, T rate, std::uint64_t step, F f) {
  with_update(Sgd{}, rate, step, f);
}

/// What decoupled weight decay multiplies weights by, before the rule.
template <class T>
inline T kept_by_decay(double rate, double weight_decay) {
  return static_cast<T>(1 - rate * weight_decay);
}

/// Calls f with the function object of this operation.
template <class T, class F>
inline void with_change(const AddWeights& add, F f) {
  f(AddWeightsElement<T>{static_cast<T>(add.factor)});
}

template <class T, class F>
inline void with_change(const ClipValues& clip, F f) {
  f(ClipElement<T>{static_cast<T>(clip.limit)});
}

template <class T, class F>
inline void with_change(const ScaleGradients& scale, F f) {
  f(ScaleElement<T>{static_cast<T>(scale.factor)});
}

template <class T, class F>
inline void with_change(const MoveAverage& average, F f) {
  f(AverageElement<T>{static_cast<T>(1 - average.decay)});
}

template <class T, class F>
inline void with_change(const LambDirection& lamb, F f) {
  const double t = static_cast<double>(lamb.step) + 1;
  const Moments<T> moments{static_cast<T>(1 - lamb.rule.beta1),
                           static_cast<T>(1 - lamb.rule.beta2)};
  f(LambElement<T>{moments, static_cast<T>(1 / (1 - std::pow(lamb.rule.beta1, t))),
                   static_cast<T>(1 / (1 - std::pow(lamb.rule.beta2, t))),
                   static_cast<T>(lamb.rule.epsilon), static_cast<T>(lamb.decay)});
}

/// Sums of squares of blocks of this many elements are formed first in all backends, so that their
/// sum has the same bits at any number of threads.
inline constexpr std::size_t kNormBlock = 4096;

/// Blocks that `size` elements from `position` of the arena on touch.
CPUTRAIN_HOST_DEVICE constexpr std::size_t norm_blocks(std::size_t position, std::size_t size) {
  return size == 0 ? 0 : (position + size - 1) / kNormBlock - position / kNormBlock + 1;
}

/// Which of those elements lie in block i of those, counted from the first: blocks begin at
/// multiples of kNormBlock of the arena, so that their sums are the same whatever part of it a rank
/// owns.
CPUTRAIN_HOST_DEVICE constexpr Range norm_range(std::size_t position, std::size_t size,
                                                std::size_t i) {
  const std::size_t first = (position / kNormBlock + i) * kNormBlock;
  const std::size_t begin = first > position ? first - position : 0;
  const std::size_t end = first + kNormBlock - position;
  return {begin, end < size ? end : size};
}

}  // namespace cputrain::optim
