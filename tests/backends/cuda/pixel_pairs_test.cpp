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
constexpr int kClassesOfPairs = 3;

template <class... Layers>
model::Graph classified(const Layers&... layers) {
  return testing::graph_of(kOddImage, layers..., model::Flatten{}, model::Dense{kClassesOfPairs},
                           model::SoftmaxCrossEntropy{});
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

/// Limits are those of rounding: weights behind a window that moved would be far beyond.
TEST(PixelPairs, TeachWhatTheReferenceLearns) {
  for (const auto& [numbers, limit] :
       {std::pair(Numbers::exact, 1e-5), {Numbers::tf32, 0.01}, {Numbers::bf16, 0.05}}) {
    for (const model::Graph& graph :
         {classified(ZeroPad{3, 3, 3, 3}, strided(7)), classified(strided(6)),
          classified(ZeroPad{1, 0, 2, 1}, strided(5)), classified(strided(3, model::Padding::same)),
          classified(strided(1))}) {
      const auto here = make_device_backend({.numbers = numbers});
      const auto there = reference::make_reference_backend(DType::f64);
      const auto samples = testing::make_images(5, kOddImage, kClassesOfPairs);
      const emulated::Counts before = emulated::counts();
      const auto found = testing::Trial(*here, graph, {3, 2}).train(samples, {3, 2});
      const auto expected = testing::Trial(*there, graph, {3, 2}).train(samples, {3, 2});
      auto made = difference(emulated::counts(), before);
      const auto& layer =
          std::get<Convolution>(graph.nodes()[pairs_of(graph)->left > 1 ? 2 : 1].layer);
      EXPECT_EQ(made.kernels["clear_padding"].launches, layer.kernel % 2 > 0 ? 2u : 0u);
      ASSERT_EQ(found.gradients.size(), expected.gradients.size());
      for (std::size_t p = 0; p < found.gradients.size(); ++p) {
        EXPECT_LT(testing::relative_distance(found.gradients[p], expected.gradients[p]), limit)
            << p;
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
