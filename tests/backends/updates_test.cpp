#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "core/random/random.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

namespace cputrain::testing::updates_test {
namespace {

struct Rule {
  std::string name;
  optim::UpdateRule rule;
};

std::vector<Rule> rules() {
  return {{"sgd", optim::Sgd{}},
          {"momentum", optim::Sgd{.momentum = 0.9}},
          {"nesterov", optim::Sgd{.momentum = 0.9, .nesterov = true}},
          {"rmsprop", optim::RmsProp{}},
          {"rmsprop_centered", optim::RmsProp{.centered = true}},
          {"rmsprop_momentum", optim::RmsProp{.momentum = 0.5}},
          {"rmsprop_both", optim::RmsProp{.momentum = 0.5, .centered = true}},
          {"adam", optim::Adam{}},
          {"adamw", optim::AdamW{}},
          {"lars", optim::Lars{}},
          {"lamb", optim::Lamb{}}};
}

/// These numbers in the backend's memory and type.
compute::OwnedArray array_of(compute::Backend& backend, std::span<const double> values) {
  compute::OwnedArray owned(backend.memory(), values.size(), backend.dtype());
  compute::write_numbers(backend.memory(), values, owned.array());
  return owned;
}

using Parameters = std::tuple<BackendUnderTest, Rule>;
class Updates : public ::testing::TestWithParam<Parameters> {};

/// Weights after some steps, in slices that do not begin at 0, as a sharded optimizer makes them,
/// each with a rate of its own.
std::vector<double> updated(compute::Backend& backend, const optim::UpdateRule& rule,
                            std::size_t size) {
  const RandomStream stream(5, Purpose::noise);
  const auto numbers = [&](std::size_t first) {
    std::vector<double> list;
    for (std::size_t i = first; i < first + size; ++i) {
      const float unit = unit_float(stream.at(static_cast<std::uint32_t>(i))[0]) - 0.5f;
      list.push_back(static_cast<double>(unit));
    }
    return list;
  };
  const compute::OwnedArray weights = array_of(backend, numbers(0));
  std::vector<compute::OwnedArray> state;
  for (int s = 0; s < optim::state_arrays(rule); ++s) {
    state.emplace_back(backend.memory(), size, backend.dtype());
  }
  for (std::uint64_t step = 0; step < 4; ++step) {
    const compute::OwnedArray gradients = array_of(backend, numbers(size * (step + 1)));
    optim::UpdatePlan plan{.rule = rule, .weight_decay = 0.1};
    for (const Range range : {Range{0, 16}, Range{16, size}}) {
      optim::UpdateSlice slice;
      slice.weights = weights.array().slice(range.begin, range.end);
      slice.gradients = gradients.array().slice(range.begin, range.end);
      for (std::size_t s = 0; s < state.size(); ++s) {
        slice.state[s] = state[s].array().slice(range.begin, range.end);
      }
      slice.decays = true;
      plan.slices.push_back(slice);
    }
    backend.make_update(plan)->apply({rule, 0.01, step, std::array{0.25, 1.5}});
  }
  return compute::read_numbers(backend.memory(), weights.array());
}

TEST_P(Updates, AgreeWithPlainLoopsInDouble) {
  const auto& [under_test, rule] = GetParam();
  constexpr std::size_t kSize = 40'001;  // enough for several threads
  const auto reference = reference::make_reference_backend(DType::f64);
  const auto expected = updated(*reference, rule.rule, kSize);
  const auto actual = updated(*under_test.make(), rule.rule, kSize);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i]));  // NaN would vanish in a maximum
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  // Centered RMSprop divides by the root of a difference that may nearly cancel.
  EXPECT_LE(worst, rule.name.starts_with("rmsprop_") ? 1e-4 : 2e-6);
}

using Operation = std::pair<std::string, optim::GradientOperation>;
class GradientOperations
    : public ::testing::TestWithParam<std::tuple<BackendUnderTest, Operation>> {};

std::vector<double> changed(compute::Backend& backend, optim::GradientOperation operation,
                            std::size_t size) {
  const RandomStream stream(6, Purpose::noise);
  std::vector<compute::OwnedArray> arrays;  // weights, gradients, state
  for (std::size_t a = 0; a < 4; ++a) {
    std::vector<double> values(size);
    for (std::size_t i = 0; a < 2 && i < size; ++i) {
      const auto at = static_cast<std::uint32_t>(a * size + i);
      values[i] = static_cast<double>(unit_float(stream.at(at)[0]) - 0.5f);
    }
    arrays.push_back(array_of(backend, values));
  }
  optim::UpdateSlice slice;
  slice.weights = arrays[0].array();
  slice.gradients = arrays[1].array();
  for (std::size_t i = 0; i < 2; ++i) slice.state[i] = arrays[2 + i].array();
  backend.change_gradients(operation, slice);
  if (auto* const lamb = std::get_if<optim::LambDirection>(&operation)) lamb->step = 1;
  backend.change_gradients(operation, slice);
  std::vector<double> all;
  for (const compute::OwnedArray& array : arrays) {
    const auto values = compute::read_numbers(backend.memory(), array.array());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(GradientOperations, AgreeWithPlainLoopsInDouble) {
  const auto& [under_test, operation] = GetParam();
  constexpr std::size_t kSize = 40'001;
  const auto expected =
      changed(*reference::make_reference_backend(DType::f64), operation.second, kSize);
  const auto actual = changed(*under_test.make(), operation.second, kSize);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i]));
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(worst, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    AllBackends, GradientOperations,
    ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                       ::testing::Values(Operation{"add_weights", optim::AddWeights{0.3}},
                                         Operation{"clip_values", optim::ClipValues{0.25}},
                                         Operation{"scale", optim::ScaleGradients{0.7}},
                                         Operation{"average", optim::MoveAverage{0.9}},
                                         Operation{"lamb",
                                                   optim::LambDirection{optim::Lamb{}, 0.1}})),
    [](const auto& test) {
      return std::get<0>(test.param).name + "_" + std::get<1>(test.param).first;
    });

class SumOfSquares : public ::testing::TestWithParam<BackendUnderTest> {};

// Whole numbers below 100: every partial sum is exact, whatever the order.
TEST_P(SumOfSquares, IsExactForWholeNumbers) {
  const auto backend = GetParam().make();
  for (const std::size_t size : {0u, 1u, 7u, 4096u, 4097u, 100'003u}) {
    std::vector<double> values(size);
    double expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<int>(i * 37 % 199) - 99;
      expected += values[i] * values[i];
    }
    EXPECT_EQ(backend->sum_of_squares(array_of(*backend, values).array()), expected) << size;
  }
}

TEST_P(SumOfSquares, DoesNotOverflowAndLetsNoNaNPass) {
  const auto backend = GetParam().make();
  std::vector<double> values(5000, 1e30);
  EXPECT_NEAR(backend->sum_of_squares(array_of(*backend, values).array()) / 5e63, 1, 1e-6);
  values[4321] = NAN;
  EXPECT_TRUE(std::isnan(backend->sum_of_squares(array_of(*backend, values).array())));
}

// A device may not have come there when somebody changes the arrays or asks for others.
TEST_P(SumOfSquares, IsOfWhatAnArrayHeldWhenItWasAskedFor) {
  const auto backend = GetParam().make();
  const auto many = array_of(*backend, std::vector<double>(5000, 2.0));
  const auto few = array_of(*backend, std::vector<double>{3, 4});
  const auto sums = backend->sums_of_squares(std::vector{many.array(), few.array()});
  compute::write_numbers(backend->memory(), std::vector<double>(5000, 1.0), many.array());
  const auto later = backend->sums_of_squares(std::vector{few.array(), many.array()});
  EXPECT_EQ(sums.wait(), (std::vector<double>{20000, 25}));
  EXPECT_EQ(later.wait(), (std::vector<double>{25, 5000}));
}

TEST(SumOfSquaresInParallel, HasTheSameBitsAtAnyNumberOfThreads) {
  if (!cpu::cpu_backend_available()) GTEST_SKIP() << "this build has no oneDNN";
  const RandomStream stream(7, Purpose::noise);
  std::vector<float> values(123'457);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = unit_float(stream.at(static_cast<std::uint32_t>(i))[0]);
  }
  const Array array = Array::of(std::span(values));
  const double alone = cpu::make_cpu_backend(1, {})->sum_of_squares(array);
  EXPECT_NEAR(alone / static_cast<double>(values.size()), 1.0 / 3, 0.01);
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(cpu::make_cpu_backend(threads, {})->sum_of_squares(array), alone) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, SumOfSquares, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(AllBackends, Updates,
                         ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                                            ::testing::ValuesIn(rules())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace cputrain::testing::updates_test
