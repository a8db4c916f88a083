// Which networks begin with one kernel in each direction, and what becomes of their weights.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "backends/reference/reference_backend.h"
#include "emulated/counts.h"
#include "model/rewrite.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

using model::Padding;

constexpr Shape kSmallImage{13, 39, 3};

template <class... Layers>
model::Graph begun_with(const Layers&... layers) {
  return testing::classifier_of(kSmallImage, layers...);
}

/// Launches of the kernel in a training step, and what came of that.
struct Step {
  std::uint64_t forward, weights;
  testing::Outcome outcome;
};
Step step_of(const model::Graph& graph, Numbers numbers) {
  const auto backend = make_device_backend({.numbers = numbers});
  testing::Trial trial(*backend, graph, {3, 2});
  const emulated::Counts before = emulated::counts();
  const auto samples = testing::make_images(5, kSmallImage, testing::kTrialClasses);
  testing::Outcome outcome = trial.train(samples, {3, 2});
  auto made = difference(emulated::counts(), before);
  return {made.kernels["first_block_forward"].launches,
          made.kernels["first_block_backward_weights"].launches, std::move(outcome)};
}

const model::Convolution kFirst{.filters = 20, .kernel = 3};

class FirstBlockOfNumbers : public ::testing::TestWithParam<Numbers> {};
INSTANTIATE_TEST_SUITE_P(Numbers, FirstBlockOfNumbers,
                         ::testing::Values(Numbers::exact, Numbers::tf32, Numbers::bf16),
                         [](const auto& test) { return std::string(word_of(test.param)); });

TEST_P(FirstBlockOfNumbers, IsOneKernelEachWay) {
  const model::Convolution padded{
      .filters = 5, .kernel = 3, .padding = Padding::same, .bias = false};
  for (const model::Graph& graph : {begun_with(kFirst, model::Relu{}, model::MaxPool{}),
                                    begun_with(padded, model::MaxPool{}, model::Relu{})}) {
    const Step step = step_of(graph, GetParam());
    EXPECT_EQ(step.forward, 2u);
    EXPECT_EQ(step.weights, 2u);
  }
}

TEST(FirstBlock, IsNoOtherThanItsKernelsKnow) {
  using model::Convolution, model::MaxPool, model::Relu;
  model::Graph read_twice(kSmallImage);
  const int conv = read_twice.add(Convolution{.filters = 8, .kernel = 3, .padding = Padding::same});
  const int pool = read_twice.add(MaxPool{});
  read_twice.add(Relu{});
  read_twice.add(MaxPool{2, 2}, "other", {conv});
  read_twice.add(model::Add{}, "sum", {pool + 1, pool + 2});
  testing::add_layers(read_twice, model::Flatten{}, model::Dense{testing::kTrialClasses},
                      model::SoftmaxCrossEntropy{});
  for (const model::Graph& graph :
       {begun_with(Convolution{.filters = 20, .kernel = 3, .stride = 2}, Relu{}, MaxPool{}),
        begun_with(Convolution{.filters = 20, .kernel = 5}, Relu{}, MaxPool{}),
        begun_with(Convolution{.filters = 6, .kernel = 3, .groups = 3}, Relu{}, MaxPool{}),
        begun_with(kFirst, Relu{}, MaxPool{3, 2}), begun_with(kFirst, Relu{}, MaxPool{2, 1}),
        begun_with(kFirst, Relu{}, MaxPool{2, 2, Padding::same}), begun_with(kFirst, MaxPool{}),
        begun_with(kFirst, model::Relu6{}, MaxPool{}), begun_with(MaxPool{}, kFirst, Relu{}),
        begun_with(model::ZeroPad{1, 1, 1, 1}, kFirst, Relu{}, MaxPool{}), read_twice}) {
    EXPECT_EQ(step_of(graph, Numbers::bf16).forward, 0u);
  }
}

TEST_P(FirstBlockOfNumbers, LearnsWhatTheReferenceLearns) {
  const model::Graph graph = begun_with(kFirst, model::Relu{}, model::MaxPool{});
  const testing::Outcome here = step_of(graph, GetParam()).outcome;
  const auto reference = reference::make_reference_backend(DType::f64);
  const auto samples = testing::make_images(5, kSmallImage, testing::kTrialClasses);
  const testing::Outcome there = testing::Trial(*reference, graph, {3, 2}).train(samples, {3, 2});
  ASSERT_EQ(here.gradients.size(), there.gradients.size());
  const double limit = GetParam() == Numbers::exact  ? 1e-5
                       : GetParam() == Numbers::tf32 ? 0.01
                                                     : 0.05;
  for (std::size_t p = 0; p < here.gradients.size(); ++p) {
    EXPECT_LT(testing::relative_distance(here.gradients[p], there.gradients[p]), limit)
        << p;  // of winners, too
  }
}

TEST_P(FirstBlockOfNumbers, EvaluatesWhatItTrains) {
  const model::Graph graph = begun_with(kFirst, model::Relu{}, model::MaxPool{});
  const auto backend = make_device_backend({.numbers = GetParam()});
  const auto samples = testing::make_images(5, kSmallImage, testing::kTrialClasses);
  const testing::Outcome evaluated =
      testing::Trial(*backend, graph, {3, 2}, compute::Phase::evaluate).evaluate(samples, {3, 2});
  EXPECT_EQ(evaluated.tally.loss, step_of(graph, GetParam()).outcome.tally.loss);
}

TEST_P(FirstBlockOfNumbers, FrozenItHasNoGradients) {
  const model::Graph graph = begun_with(kFirst, model::Relu{}, model::MaxPool{});
  const std::string frozen[] = {graph.nodes()[1].name};
  const Step step = step_of(model::with_frozen(graph, frozen), GetParam()),
             learns = step_of(graph, GetParam());
  EXPECT_EQ(step.forward, 2u);
  EXPECT_EQ(step.weights, 0u);
  EXPECT_EQ(step.outcome.tally.loss, learns.outcome.tally.loss);
}

}  // namespace
}  // namespace cputrain::cuda
