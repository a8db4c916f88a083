#include <gtest/gtest.h>

#include <cmath>

#include "backend/backends_under_test.h"
#include "backends/reference/reference_backend.h"
#include "core/random.h"

namespace cputrain::testing {
namespace {

struct Rule {
  std::string name;
  UpdateRule rule;
};

std::vector<Rule> rules() {
  return {{"sgd", Sgd{}},
          {"momentum", Sgd{.momentum = 0.9}},
          {"nesterov", Sgd{.momentum = 0.9, .nesterov = true}},
          {"rmsprop", RmsProp{}},
          {"rmsprop_centered", RmsProp{.centered = true}},
          {"rmsprop_momentum", RmsProp{.momentum = 0.5}},
          {"rmsprop_both", RmsProp{.momentum = 0.5, .centered = true}},
          {"adam", Adam{}}};
}

using Parameters = std::tuple<BackendUnderTest, Rule>;
class Updates : public ::testing::TestWithParam<Parameters> {};

/// Weights after some steps, in slices that do not begin at 0, as a sharded optimizer makes them.
template <class T>
std::vector<double> updated(Backend& backend, const UpdateRule& rule, std::size_t size) {
  const RandomStream stream(5, Purpose::noise);
  std::vector<T> weights(size), gradients(size);
  std::vector<std::vector<T>> state(kMaxStateArrays, std::vector<T>(size));
  const auto number = [&](std::size_t i) {
    return static_cast<T>(unit_float(stream.at(static_cast<std::uint32_t>(i))[0]) - 0.5f);
  };
  for (std::size_t i = 0; i < size; ++i) weights[i] = number(i);
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < size; ++i) gradients[i] = number(size * (step + 1) + i);
    for (const Range range : {Range{0, 16}, Range{16, size}}) {
      UpdateSlice slice;
      slice.weights = Array::of(std::span(weights)).slice(range.begin, range.end);
      slice.gradients = Array::of(std::span(gradients)).slice(range.begin, range.end);
      for (int s = 0; s < state_arrays(rule); ++s) {
        slice.state[s] = Array::of(std::span(state[s])).slice(range.begin, range.end);
      }
      slice.learning_rate = 0.01;
      slice.weight_decay = 0.1;
      slice.step = step;
      backend.update(rule, slice);
    }
  }
  return {weights.begin(), weights.end()};
}

TEST_P(Updates, AgreeWithPlainLoopsInDouble) {
  const auto& [under_test, rule] = GetParam();
  constexpr std::size_t kSize = 40'001;  // enough for several threads
  const auto reference = make_reference_backend(DType::f64);
  const auto backend = under_test.make();
  const auto expected = updated<double>(*reference, rule.rule, kSize);
  const auto actual = updated<float>(*backend, rule.rule, kSize);
  double worst = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_TRUE(std::isfinite(actual[i]));  // NaN would vanish in a maximum
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  // Centered RMSprop divides by the root of a difference that may nearly cancel.
  EXPECT_LE(worst, std::get<1>(GetParam()).name.starts_with("rmsprop_") ? 1e-4 : 2e-6);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Updates,
                         ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                                            ::testing::ValuesIn(rules())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace cputrain::testing
