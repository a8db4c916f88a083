#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Dense layers large enough that the cpu backend skips zeros of what they read, against
/// `reference` in double: behind every kind of ReLU, and where there is none.
namespace cputrain::testing::dense_test {
namespace {

constexpr Shape kImage{22, 22, 3};
constexpr int kClasses = 3;
/// Times 10 * 10 * 8 inputs: more than a million weights, for what skips zeros. The emulated device
/// skips none, and is slow.
constexpr int kUnits = 1680, kEmulatedUnits = 70;

class LargeDenseLayers : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  static int units() { return GetParam().emulated ? kEmulatedUnits : kUnits; }

  void expect_reference(const model::Graph& graph, const std::vector<int>& pieces) {
    if (!GetParam().runs(graph)) return expect_refusal(GetParam(), graph);
    int images = 0;
    for (const int piece : pieces) images += piece;
    const Samples samples = make_images(images, kImage, kClasses);
    const auto reference = reference::make_reference_backend(DType::f64);
    Trial whole(*reference, graph, {images});
    const Outcome expected = whole.train(samples, {images});
    const auto backend = GetParam().make();
    Trial trial(*backend, graph, pieces);
    const Outcome outcome = trial.train(samples, pieces);
    EXPECT_NEAR(outcome.tally.loss, expected.tally.loss,
                GetParam().tolerance * expected.tally.loss);
    for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
      EXPECT_LE(relative_distance(outcome.gradients[p], expected.gradients[p]),
                10 * GetParam().tolerance)
          << whole.program().layout().parameters[p].name;
    }
  }
};

/// The convolution and what follows it, then a large dense layer that reads it.
template <class... Layers>
model::Graph behind(int units, const Layers&... layers) {
  model::Graph graph(kImage);
  graph.add(model::Convolution{.filters = 8, .kernel = 3});
  (graph.add(layers), ...);
  graph.add(model::Flatten{});
  graph.add(model::Dense{.units = units}, "large");
  graph.add(model::Relu{});
  graph.add(model::Dense{kClasses}, "last");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

TEST_P(LargeDenseLayers, BehindPoolAndRelu) {
  for (const std::vector<int>& pieces : std::vector<std::vector<int>>{{1}, {3, 2, 1}, {40}}) {
    expect_reference(behind(units(), model::MaxPool{}, model::Relu{}), pieces);
  }
}

TEST_P(LargeDenseLayers, BehindReluAndPool) {
  expect_reference(behind(units(), model::Relu{}, model::MaxPool{}), {2, 3});
}

TEST_P(LargeDenseLayers, BehindRelusInPlace) {
  expect_reference(behind(units(), model::AveragePool{}, model::Relu{}, model::Dropout{0.5f}), {3});
}

/// Nothing but the zeros that dropout made may be skipped on the way back.
TEST_P(LargeDenseLayers, WithoutRelu) {
  expect_reference(behind(units(), model::MaxPool{}), {2, 1});
  expect_reference(behind(units(), model::AveragePool{}, model::Dropout{0.5f}), {2});
}

/// One of the two adds to the gradient that the other wrote.
model::Graph two_read_one_map(int units) {
  model::Graph graph = graph_of(kImage, model::Convolution{.filters = 8, .kernel = 3},
                                model::MaxPool{}, model::Relu{});
  const int map = graph.add(model::Flatten{});
  const int left = graph.add(model::Dense{.units = units}, "left", {map});
  const int right = graph.add(model::Dense{.units = units, .bias = false}, "right", {map});
  graph.add(model::Add{}, "", {left, right});
  graph.add(model::Relu{});
  graph.add(model::Dense{kClasses}, "last");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

TEST_P(LargeDenseLayers, TwoReadOneMap) { expect_reference(two_read_one_map(units()), {2, 1}); }

/// Enough images for layers of narrow factors.
class NarrowLargeDenseLayers : public LargeDenseLayers {};

TEST_P(NarrowLargeDenseLayers, BehindPoolAndRelu) {
  expect_reference(behind(units(), model::MaxPool{}, model::Relu{}), {17, 16});
}

TEST_P(NarrowLargeDenseLayers, TwoReadOneMap) {
  expect_reference(two_read_one_map(units()), {16, 18});
}

INSTANTIATE_TEST_SUITE_P(NarrowBackends, NarrowLargeDenseLayers,
                         ::testing::ValuesIn(narrow_backends_under_test()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(AllBackends, LargeDenseLayers, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::dense_test
