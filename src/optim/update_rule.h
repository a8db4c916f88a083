#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/array.h"

/// Keras' update rules (tf.keras OptimizerV2 of TensorFlow 2.1 to 2.10) and two for large batches,
/// as data. The formulas are in update_math.h. State starts at zero.
namespace cputrain::optim {

/// Names of arrays, each as long as the weights, that a rule keeps from step to step: 0 to 3.
using StateNames = std::vector<std::string_view>;
inline StateNames momentum_state(double momentum) {
  return momentum > 0 ? StateNames{"momentum"} : StateNames{};
}

struct Sgd {
  static constexpr std::string_view kName = "sgd";
  static constexpr double kLearningRate = 0.01;  ///< Keras' default, as of the next two
  StateNames states() const { return momentum_state(momentum); }

  double momentum = 0.0;
  bool nesterov = false;
};

struct RmsProp {
  static constexpr std::string_view kName = "rmsprop";
  static constexpr double kLearningRate = 0.001;
  StateNames states() const {
    StateNames names{"square"};
    if (centered) names.push_back("mean");
    if (momentum > 0) names.push_back("momentum");
    return names;
  }

  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
  bool centered = false;
};

struct Adam {
  static constexpr std::string_view kName = "adam";
  static constexpr double kLearningRate = 0.001;
  StateNames states() const { return {"m", "v"}; }

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
};

/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019): Adam, whose decay is
/// UpdatePlan's, as that of every rule here; a rule of its own for its name and its own decay.
struct AdamW : Adam {
  static constexpr std::string_view kName = "adamw";
  static constexpr double kWeightDecay = 0.004;  ///< Keras' default
};

/// You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks" (2017), algorithm 1:
/// each kernel's rate is multiplied by trust * |w| / (|g| + decay * |w|), and g + decay * w goes
/// into the momentum. Biases and batch norm's parameters have the plain rate and no decay, as in
/// MLPerf's reference.
struct Lars {
  static constexpr std::string_view kName = "lars";
  static constexpr double kLearningRate = 1;  ///< trust is the small figure
  static constexpr bool kLayerWise = true;
  StateNames states() const { return momentum_state(momentum); }

  double momentum = 0.9;
  double trust = 0.001;
};

/// You et al., "Large Batch Optimization for Deep Learning" (2020), algorithm 2 with phi(x) = x:
/// Adam's direction with both bias corrections, plus decay * w; each kernel's rate is multiplied by
/// |w| / |direction|. Biases and batch norm's parameters have the plain rate and no decay.
struct Lamb {
  static constexpr std::string_view kName = "lamb";
  static constexpr double kLearningRate = 0.001;
  static constexpr bool kLayerWise = true;
  StateNames states() const { return {"m", "v"}; }

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
};

using UpdateRule = std::variant<Sgd, RmsProp, Adam, AdamW, Lars, Lamb>;

/// Calls f(name, figure) for each figure of the rule that flags and recipes may set.
template <class Rule, class F>
void for_figures(Rule& rule, const F& f) {
  std::visit(
      [&](auto& r) {
        if constexpr (requires { r.momentum; }) f("momentum", r.momentum);
        if constexpr (requires { r.nesterov; }) f("nesterov", r.nesterov);
        if constexpr (requires { r.rho; }) f("rho", r.rho);
        if constexpr (requires { r.epsilon; }) f("epsilon", r.epsilon);
        if constexpr (requires { r.centered; }) f("centered", r.centered);
        if constexpr (requires { r.trust; }) f("trust", r.trust);
      },
      rule);
}
/// Their names, over all rules.
std::vector<std::string> figure_names();

int state_arrays(const UpdateRule&);
StateNames state_names(const UpdateRule&);
/// "sgd", and all of these names.
std::string_view rule_name(const UpdateRule&);
std::vector<std::string> rule_names();
/// With its own figures; nothing for another name.
std::optional<UpdateRule> rule_named(std::string_view);
double default_learning_rate(const UpdateRule&);
/// 0 where the rule has none of its own.
double default_weight_decay(const UpdateRule&);
/// Whether kernels have rates of their own, which depend on norms.
bool is_layer_wise(const UpdateRule&);
/// 0 where the rule has none.
double momentum_of(const UpdateRule&);
/// The rule with its momentum multiplied; it must have one.
UpdateRule with_momentum_times(const UpdateRule&, double factor);

/// A rule by its name, empty for the model's, and figures of it by their names; what is yes or no
/// is 1 or 0.
struct RuleChoice {
  std::string rule{};
  std::map<std::string, double> figures{};
};

/// "adam", "rmsprop:momentum=0.9,centered", or figures alone: "momentum=0.9". Error(usage).
RuleChoice parse_rule(const std::string& text);

inline constexpr int kMaxStateArrays = 3;

/// One slice of the arenas, and how it differs from others.
struct UpdateSlice {
  Array weights, gradients;
  std::array<Array, kMaxStateArrays> state{};  ///< the first state_arrays(rule) of them are used
  double added_weights = 0;                    ///< AddWeights' factor, before all else
  bool decays = false;
};

/// What an update does in every step.
struct UpdatePlan {
  UpdateRule rule;
  std::vector<UpdateSlice> slices{};
  double limit = std::numeric_limits<double>::infinity();  ///< ClipValues', before the rule
  /// For slices that decay. Decoupled, as Keras' argument: w -= learning_rate * decay * w. Not for
  /// layer-wise rules, in whose gradients it is already.
  double weight_decay = 0;
};

/// What differs from step to step.
struct UpdateStep {
  UpdateRule rule;  ///< the plan's, maybe with another momentum
  double learning_rate = 0;
  std::uint64_t step = 0;           ///< counts from 0
  std::span<const double> trust{};  ///< by slice, what the rate is multiplied by; empty: 1
};

/// What is done to reduced gradients before the rule, in place. Of a slice only arrays count.

/// g += factor * w: the gradient of L2, or LARS' weight decay.
struct AddWeights {
  double factor;
};
/// g = min(max(g, -limit), limit)
struct ClipValues {
  double limit;
};
/// g *= factor
struct ScaleGradients {
  double factor;
};
/// Adam's moments (the state), then g = m^ / (sqrt(v^) + epsilon) + decay * w.
struct LambDirection {
  Lamb rule;
  double decay;
  std::uint64_t step = 0;  ///< counts from 0
};

/// g = decay * g + (1 - decay) * w, where what stands for g is an average of the weights.
struct MoveAverage {
  double decay;
};

using GradientOperation =
    std::variant<AddWeights, ClipValues, ScaleGradients, LambDirection, MoveAverage>;

}  // namespace cputrain::optim
