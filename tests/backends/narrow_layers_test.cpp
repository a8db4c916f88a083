#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "tests/backends/backends_under_test.h"
#include "tests/backends/layer_cases.h"

/// Every layer on backends whose convolutions multiply numbers of 8 bits. Sums over factors that
/// are rounded lie off those over the factors themselves, and by how much depends on the network
/// and the tensor: where terms cancel (a bias's gradient, over all pixels) it is ten times the
/// roundings. So the bounds come from plain loops in double over rounded factors, which have no
/// other error.
namespace cputrain::testing::narrow_layers_test {
namespace {

using reference::Factors;

constexpr std::array<std::uint64_t, 3> kSeeds{2, 3, 4};
/// Error of sums in float, as every other backend may have it.
constexpr double kSums = 1e-5;
/// What rounding moves a factor by: 2^-8 of it at most, 2^-9 on average. A tensor of few numbers is
/// moved by less now and then, by chance.
constexpr double kRounding = 0x1p-9;
/// Where a direction has no such kernel and stays in float, roundings are missing that would cancel
/// others: of conv_13x13_odd_channels, any directions in float, images of 600 seeds, no tensor was
/// moved 2.6 times as far. Where a float sum falls on the other side of a tie, few roundings
/// differ.
constexpr double kOtherRoundings = 3;

/// What is allowed, from the most that rounding alone moves each tensor by.
std::vector<Distance> bounds(const LayerCase& c, Run run) {
  std::vector<Distance> allowed;
  for (const std::uint64_t seed : kSeeds) {
    const auto moved = distances(c, outcome_in_double(c, seed, run, Factors::bf16),
                                 outcome_in_double(c, seed, run));
    if (allowed.empty()) allowed = moved;
    for (std::size_t t = 0; t < moved.size(); ++t) {
      allowed[t].relative = std::max(allowed[t].relative, moved[t].relative);
    }
  }
  for (auto& [tensor, moved] : allowed) {
    moved = kSums + (moved > 0 ? kOtherRoundings * std::max(moved, kRounding) : 0);
  }
  return allowed;
}

using Parameters = std::tuple<BackendUnderTest, LayerCase>;
class NarrowLayers : public ::testing::TestWithParam<Parameters> {};

/// Says which sum is off, and whether it is off what rounded factors make, too.
TEST_P(NarrowLayers, AreAsCloseAsRoundedFactorsAre) {
  const auto& [under_test, c] = GetParam();
  const auto backend = under_test.make();
  const auto allowed = bounds(c, Run::step);
  for (const std::uint64_t seed : kSeeds) {
    const Outcome actual = outcome_on(*backend, c, seed, Run::step);
    const Outcome& exact = outcome_in_double(c, seed, Run::step);
    const Outcome& rounded = outcome_in_double(c, seed, Run::step, Factors::bf16);
    EXPECT_EQ(actual.tally.correct, exact.tally.correct);
    EXPECT_EQ(actual.tally.images, c.images);
    const auto off = distances(c, actual, exact), off_rounded = distances(c, actual, rounded),
               moved = distances(c, rounded, exact);
    for (std::size_t t = 0; t < off.size(); ++t) {
      EXPECT_LE(off[t].relative, allowed[t].relative)
          << off[t].tensor << ", images of seed " << seed << ": rounded factors alone move it by "
          << moved[t].relative << ", and it is " << off_rounded[t].relative << " off those";
    }
  }
}

/// The loss is smooth whatever the layers.
class NarrowForward : public NarrowLayers {};
TEST_P(NarrowForward, EvaluateWithoutGradients) {
  const auto& [under_test, c] = GetParam();
  const compute::Tally e = outcome_in_double(c, kSeeds[0], Run::loss).tally;
  const compute::Tally a = outcome_on(*under_test.make(), c, kSeeds[0], Run::loss).tally;
  EXPECT_NEAR(a.loss, e.loss, bounds(c, Run::loss).front().relative * e.loss);
  EXPECT_EQ(a.correct, e.correct);
}

/// One window in fifty has another winner; gradients of another map would be as far as they are
/// long.
class NarrowPools : public NarrowLayers {};
TEST_P(NarrowPools, HaveMostWinnersOfPlainLoops) {
  const auto& [under_test, c] = GetParam();
  const auto backend = under_test.make();
  const Outcome& exact = outcome_in_double(c, kSeeds[0], Run::step);
  for (const Distance& off : distances(c, outcome_on(*backend, c, kSeeds[0], Run::step), exact)) {
    EXPECT_LE(off.relative, 0.3) << off.tensor;
  }
}

template <class Predicate>
std::vector<LayerCase> cases_where(const Predicate& wanted) {
  std::vector<LayerCase> chosen;
  std::ranges::copy_if(layer_cases(), std::back_inserter(chosen), wanted);
  return chosen;
}
/// A mistake that a kernel could have, planted in what is computed with rounded factors.
struct Mistake {
  std::string name;
  /// Changes a kernel of these canonical extents (height, width, in, out), or its gradient.
  std::function<void(const std::vector<int>& extents, std::vector<double>&)> make;
  bool in_gradient;
};

void swap_first_channels(const std::vector<int>& extents, std::vector<double>& kernel) {
  const auto in = static_cast<std::size_t>(extents[2]), out = static_cast<std::size_t>(extents[3]);
  const std::ptrdiff_t row = in == 1 ? 1 : extents[3];  // depthwise, each has a column
  for (auto tap = kernel.begin(); tap != kernel.end();
       tap += static_cast<std::ptrdiff_t>(in * out)) {
    std::swap_ranges(tap, tap + row, tap + row);
  }
}

/// That in the middle, which reads the map wherever the window lies.
void drop_tap(const std::vector<int>& extents, std::vector<double>& kernel) {
  const std::size_t tap = static_cast<std::size_t>(extents[0]) / 2 * extents[1] + extents[1] / 2;
  const std::size_t size = static_cast<std::size_t>(extents[2]) * extents[3];
  std::fill_n(kernel.begin() + static_cast<std::ptrdiff_t>(tap * size), size, 0.0);
}

/// Among those that are not zero: taps outside of small maps are.
void lose_one_in_a_hundred(const std::vector<int>&, std::vector<double>& kernel) {
  int seen = 0;
  for (double& value : kernel) {
    if (value != 0 && seen++ % 100 == 0) value = 0;
  }
}

const std::array kMistakes{Mistake{"swapped channels", swap_first_channels, false},
                           Mistake{"a dropped tap", drop_tap, false},
                           Mistake{"swapped channels of the gradient", swap_first_channels, true},
                           Mistake{"a dropped tap of the gradient", drop_tap, true},
                           Mistake{"1 % of the gradient lost", lose_one_in_a_hundred, true}};

Outcome with_mistake(const LayerCase& c, std::size_t parameter, const Mistake& mistake) {
  const auto backend = reference::make_reference_backend(DType::f32, Factors::bf16);
  Trial trial(*backend, build(c), {c.images});
  const auto& program = trial.program();
  const std::vector<int>& extents = program.layout().parameters[parameter].extents;
  if (!mistake.in_gradient) {
    auto kernel = program.parameters().to_canonical(parameter, trial.weights());
    mistake.make(extents, kernel);
    program.parameters().from_canonical(parameter, kernel, trial.weights());
  }
  Outcome outcome =
      trial.train(make_images(c.images, c.image, c.classes, kSeeds[0]), {c.images}, 4);
  if (mistake.in_gradient) mistake.make(extents, outcome.gradients[parameter]);
  return outcome;
}

class NarrowBounds : public ::testing::TestWithParam<LayerCase> {};

TEST_P(NarrowBounds, FindMistakesInEveryConvolution) {
  const LayerCase& c = GetParam();
  const auto allowed = bounds(c, Run::step);
  const Outcome& exact = outcome_in_double(c, kSeeds[0], Run::step);
  const auto layout = compute::lay_out(build(c), DType::f64);
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    if (layout.parameters[p].extents.size() != 4) continue;
    for (const Mistake& mistake : kMistakes) {
      const auto off = distances(c, with_mistake(c, p, mistake), exact);
      bool found = false;
      for (std::size_t t = 0; t < off.size(); ++t) {
        found = found || off[t].relative > allowed[t].relative;
      }
      EXPECT_TRUE(found) << mistake.name << " in " << layout.parameters[p].name;
    }
  }
}

std::string case_name(const ::testing::TestParamInfo<Parameters>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}
auto narrow(const std::vector<LayerCase>& chosen) {
  return ::testing::Combine(::testing::ValuesIn(narrow_backends_under_test()),
                            ::testing::ValuesIn(chosen));
}
INSTANTIATE_TEST_SUITE_P(NarrowBackends, NarrowLayers, narrow(cases_where(smooth)), case_name);
INSTANTIATE_TEST_SUITE_P(NarrowBackends, NarrowForward, narrow(layer_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(NarrowBackends, NarrowPools, narrow(cases_where([](const LayerCase& c) {
                           return has<model::MaxPool>(c) && !has<model::Relu>(c);
                         })),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Cases, NarrowBounds, ::testing::ValuesIn(cases_where([](const auto& c) {
                           return smooth(c) && has<model::Convolution>(c) && !c.large;
                         })),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::narrow_layers_test
