// Which networks begin with pairs of pixels, and what they learn then.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/ops/elementwise_ops.h"
#include "backends/reference/reference_backend.h"
#include "emulated/counts.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

using model::Convolution, model::ZeroPad;

constexpr Shape kOddImage{12, 15, 3};

template <class... Layers>
model::Graph classified(const Layers&... layers) {
  return testing::classifier_of(kOddImage, layers...);
}

Convolution strided(int kernel, model::Padding padding = model::Padding::valid) {
  return {.filters = 9, .kernel = kernel, .stride = 2, .padding = padding};
}

std::optional<PixelPairs> pairs_of(const model::Graph& graph) {
  return PixelPairs::of(compute::GraphWalk(graph));
}

TEST(PixelPairs, AreWhatAConvolutionOfStrideTwoReads) {
  struct Case {
    model::Graph graph;
    int left, width;  ///< zeros before a row, pairs in it
  };
  for (const Case& c :
       {Case{classified(strided(7)), 0, 8}, Case{classified(ZeroPad{3, 3, 3, 3}, strided(7)), 3, 8},
        Case{classified(ZeroPad{0, 1, 2, 0}, strided(3)), 2, 8},
        Case{classified(strided(3, model::Padding::same)), 1, 8}}) {
    const auto pairs = pairs_of(c.graph);
    ASSERT_TRUE(pairs.has_value());
    EXPECT_EQ(pairs->left, c.left);
    EXPECT_EQ(pairs->map(), (Shape{12, c.width, 8}));
  }
}

TEST(PixelPairs, AreWhatNothingElseReads) {
  Convolution grouped = strided(3), slow = strided(3), fast = strided(5);
  grouped.groups = 3;
  slow.stride = 1;
  fast.stride = 4;
  model::Graph read_twice(kOddImage);
  read_twice.add(strided(3), "one", {0});
  read_twice.add(strided(3), "other", {0});
  read_twice.add(model::Add{}, "sum", {1, 2});
  const ZeroPad wide{3, 3, 3, 3};
  for (const model::Graph& graph :
       {classified(grouped), classified(slow), classified(fast), classified(model::MaxPool{}),
        classified(wide, strided(3)), classified(wide, strided(7, model::Padding::same)),
        read_twice}) {
    EXPECT_FALSE(pairs_of(graph).has_value());
  }
}

/// What is padding is zero in gradients, too.
void expect_learns(const model::Graph& graph, int kernel, Numbers numbers, double limit) {
  const auto here = make_device_backend({.numbers = numbers});
  const auto there = reference::make_reference_backend(DType::f64);
  const auto samples = testing::make_images(5, graph.nodes().front().dst, testing::kTrialClasses);
  const emulated::Counts before = emulated::counts();
  testing::Trial trial(*here, graph, {3, 2});
  const auto found = trial.train(samples, {3, 2});
  const auto expected = testing::Trial(*there, graph, {3, 2}).train(samples, {3, 2});
  auto made = difference(emulated::counts(), before);
  EXPECT_EQ(made.kernels["clear_padding"].launches, kernel % 2 > 0 ? 2u : 0u);
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (std::size_t p = 0; p < found.gradients.size(); ++p) {
    EXPECT_LT(testing::relative_distance(found.gradients[p], expected.gradients[p]), limit) << p;
  }
  // A way to and fro makes padding zero.
  const auto gradients = [&] {
    std::vector<float> all(trial.gradients().size);
    here->memory().read(trial.gradients().data, std::as_writable_bytes(std::span(all)));
    return all;
  };
  const std::vector<float> made_by_kernels = gradients();
  const compute::StoredParameters& parameters = trial.program().parameters();
  parameters.from_canonical(0, parameters.to_canonical(0, trial.gradients()), trial.gradients());
  EXPECT_EQ(gradients(), made_by_kernels);
}

TEST(PixelPairs, TeachWhatTheReferenceLearns) {
  using enum model::Padding;
  struct Case {
    model::Graph graph;
    int kernel;
  };
  const std::pair<Numbers, double> all[] = {
      {Numbers::exact, 1e-5}, {Numbers::tf32, 0.01}, {Numbers::bf16, 0.05}};
  for (const auto& [numbers, limit] : all) {
    for (const Case& c :
         {Case{classified(ZeroPad{3, 3, 3, 3}, strided(7)), 7}, Case{classified(strided(6)), 6},
          Case{classified(ZeroPad{1, 0, 2, 1}, strided(5)), 5},
          Case{classified(strided(3, same)), 3}, Case{classified(strided(7, half)), 7},
          Case{classified(strided(1)), 1}}) {
      expect_learns(c.graph, c.kernel, numbers, limit);
    }
  }
}

TEST(PixelPairs, MayBeFewerThanAWindowHas) {
  const model::Graph graph = testing::classifier_of({12, 4, 3}, strided(7, model::Padding::same));
  expect_learns(graph, 7, Numbers::exact, 1e-5);
}

}  // namespace
}  // namespace cputrain::cuda
