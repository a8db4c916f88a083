#include "optim/update_rule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "optim/update_math.h"

namespace cputrain::optim {
namespace {

/// Weight after each step of minimising w^2 / 2 (the gradient is w itself) or with a fixed
/// gradient.
template <class T = double>
std::vector<T> follow(const UpdateRule& rule, std::type_identity_t<T> weight, double rate,
                      int steps, std::optional<std::type_identity_t<T>> gradient = {},
                      double decay = 0) {
  std::array<T, kMaxStateArrays> state{};
  std::vector<T> path;
  for (int step = 0; step < steps; ++step) {
    const T g = gradient.value_or(weight);
    const UpdatePointers<T> p{&weight, &g, {&state[0], &state[1], &state[2]}, 1};
    update_elements(rule, p, rate, decay, static_cast<std::uint64_t>(step));
    path.push_back(weight);
  }
  return path;
}

TEST(Sgd, IsTheClosedForm) {
  EXPECT_NEAR(follow(Sgd{}, 1, 0.1, 10).back(), std::pow(0.9, 10), 1e-15);
  // With momentum 0.9 the first steps are 0.1 and 0.9 * 0.1 + 0.1 * 0.9 = 0.18.
  const auto path = follow(Sgd{.momentum = 0.9}, 1, 0.1, 2);
  EXPECT_NEAR(path[0], 0.9, 1e-15);
  EXPECT_NEAR(path[1], 0.9 - 0.18, 1e-15);
}

TEST(Sgd, NesterovLooksAhead) {
  // velocity = -0.1; the step is 0.9 * velocity - 0.1.
  EXPECT_NEAR(follow({Sgd{0.9, true}}, 1, 0.1, 1)[0], 1 - 0.09 - 0.1, 1e-15);
}

// Keras' documented check: lr 0.1, w 10, gradient 10 -> 9.683772.
TEST(RmsProp, AddsEpsilonOutsideTheRootWithoutMomentum) {
  EXPECT_NEAR(follow(RmsProp{}, 10, 0.1, 1, 10)[0], 10 - 0.1 * 10 / (std::sqrt(10.0) + 1e-7),
              1e-14);
  EXPECT_NEAR(follow(RmsProp{}, 10, 0.1, 1, 10)[0], 9.683772, 1e-6);
  // A gradient far below epsilon shows where it is added: 1e-9 / (sqrt(1e-19) + 1e-7).
  EXPECT_NEAR(follow(RmsProp{}, 1, 1, 1, 1e-9)[0], 1 - 1e-9 / (std::sqrt(1e-19) + 1e-7), 1e-15);
}

TEST(RmsProp, AddsEpsilonInsideTheRootWithMomentum) {
  const double step = 1e-9 / std::sqrt(1e-19 + 1e-7);
  EXPECT_NEAR(follow(RmsProp{.momentum = 0.5}, 1, 1, 1, 1e-9)[0], 1 - step, 1e-15);
  const auto path = follow(RmsProp{.momentum = 0.5}, 0, 0.1, 2, 3);
  const double first = 0.1 * 3 / std::sqrt(0.9 + 1e-7);
  const double second = 0.5 * first + 0.1 * 3 / std::sqrt(0.9 * 0.9 + 0.9 + 1e-7);
  EXPECT_NEAR(path[1], -first - second, 1e-14);
}

TEST(RmsProp, CentredSubtractsTheMean) {
  const double variance = 0.9 - 0.3 * 0.3;  // mean square 0.1 * 9, mean 0.1 * 3
  EXPECT_NEAR(follow(RmsProp{.centered = true}, 0, 0.1, 1, 3)[0],
              -0.3 / (std::sqrt(variance) + 1e-7), 1e-14);
  EXPECT_NEAR(follow(RmsProp{.momentum = 0.5, .centered = true}, 0, 0.1, 1, 3)[0],
              -0.3 / std::sqrt(variance + 1e-7), 1e-14);
}

// A steady gradient leaves nothing in the end but rounding, which has no root.
TEST(RmsProp, CentredTakesNoRootOfLessThanNothing) {
  for (const double momentum : {0.0, 0.5}) {
    const RmsProp rule{.momentum = momentum, .epsilon = 1e-20, .centered = true};
    for (const float weight : follow<float>(rule, 0, 1e-6, 400, 0.1f)) {
      ASSERT_TRUE(std::isfinite(weight));
    }
  }
}

// With a constant gradient both moments are exact after bias correction, so every step is
// rate * g / (|g| + epsilon hat / sqrt(1 - beta2^t)).
TEST(Adam, IsTheClosedFormForAConstantGradient) {
  double expected = 1;
  const auto path = follow(Adam{}, 1, 0.01, 5, -2.0);
  for (int t = 1; t <= 5; ++t) {
    expected += 0.01 * 2 / (2 + 1e-7 / std::sqrt(1 - std::pow(0.999, t)));
    EXPECT_NEAR(path[static_cast<std::size_t>(t) - 1], expected, 1e-12);
  }
}

TEST(WeightDecay, IsDecoupled) {
  EXPECT_NEAR(follow(Adam{}, 1, 0.1, 1, 0.0, 0.5)[0], 1 - 0.1 * 0.5, 1e-15);
  EXPECT_NEAR(follow(Sgd{}, 1, 0.1, 1, 2.0, 0.5)[0], 0.95 - 0.2, 1e-15);
}

/// The gradient of one element after each of some steps with the same gradient.
std::vector<double> directions(GradientOperation operation, double weight, double gradient,
                               int steps) {
  std::array<double, kMaxStateArrays> state{};
  std::vector<double> list;
  for (int step = 0; step < steps; ++step) {
    double g = gradient;
    const GradientPointers<double> p{&weight, &g, {&state[0], &state[1], &state[2]}, 1};
    if (auto* const lamb = std::get_if<LambDirection>(&operation)) {
      lamb->step = static_cast<std::uint64_t>(step);
    }
    std::visit([&](const auto& op) { gradient_math(op, p); }, operation);
    list.push_back(g);
  }
  return list;
}

TEST(GradientOperation, IsItsFormula) {
  EXPECT_NEAR(directions(AddWeights{0.2}, 3, 1, 1)[0], 1 + 0.6, 1e-15);
  EXPECT_NEAR(directions(ScaleGradients{0.2}, 3, 5, 1)[0], 1, 1e-15);
  EXPECT_NEAR(directions(MoveAverage{0.9}, 3, 5, 1)[0], 0.9 * 5 + 0.1 * 3, 1e-15);
  EXPECT_EQ(directions(ClipValues{0.5}, 3, 0.75, 1)[0], 0.5);
  EXPECT_EQ(directions(ClipValues{0.5}, 3, -0.75, 1)[0], -0.5);
  EXPECT_EQ(directions(ClipValues{0.5}, 3, -0.25, 1)[0], -0.25);
  EXPECT_EQ(directions(ClipValues{0.5}, 3, -INFINITY, 1)[0], -0.5);
  EXPECT_TRUE(std::isnan(directions(ClipValues{0.5}, 3, NAN, 1)[0]));
}

// With a constant gradient both corrected moments are exact: g / (|g| + epsilon) + decay * w.
TEST(Lamb, DirectionIsTheClosedFormForAConstantGradient) {
  for (const double g : {-2.0, 1e-3}) {
    for (const double direction : directions(LambDirection{Lamb{}, 0.1}, 3, g, 5)) {
      EXPECT_NEAR(direction, g / (std::abs(g) + 1e-6) + 0.3, 1e-12);
    }
  }
}

TEST(LargeBatchRules, EndInPlainSteps) {
  EXPECT_NEAR(follow(Lamb{}, 1, 0.1, 1, 2.0)[0], 0.8, 1e-15);
  EXPECT_EQ(follow(Lars{.momentum = 0.9}, 1, 0.1, 4), follow(Sgd{.momentum = 0.9}, 1, 0.1, 4));
}

TEST(MomentumCorrection, ChangesTheMomentumAlone) {
  EXPECT_EQ(momentum_of(with_momentum_times(Sgd{.momentum = 0.5}, 0.5)), 0.25);
  EXPECT_EQ(momentum_of(with_momentum_times(Lars{.momentum = 0.5}, 3)), 1.5);
  const auto rule = with_momentum_times(RmsProp{.rho = 0.7, .momentum = 0.5}, 0.5);
  EXPECT_EQ(std::get<RmsProp>(rule).rho, 0.7);
  EXPECT_EQ(momentum_of(Adam{}), 0);
}

TEST(StateArrays, AreAsManyAsTheRuleKeeps) {
  EXPECT_EQ(state_arrays(Sgd{}), 0);
  EXPECT_EQ(state_arrays(Sgd{.momentum = 0.9}), 1);
  EXPECT_EQ(state_arrays(RmsProp{}), 1);
  EXPECT_EQ(state_arrays(RmsProp{.momentum = 0.9, .centered = true}), 3);
  EXPECT_EQ(state_arrays(Adam{}), 2);
  EXPECT_EQ(state_arrays(Lars{}), 1);
  EXPECT_EQ(state_arrays(Lars{.momentum = 0}), 0);
  EXPECT_EQ(state_arrays(Lamb{}), 2);
}

}  // namespace
}  // namespace cputrain::optim
