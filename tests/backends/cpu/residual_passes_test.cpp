// Passes over the maps of residual blocks: what runs with a convolution, and that sums which are
// taken on the way are the same bits however the images are cut into pieces.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "tests/backends/trial.h"

namespace cputrain::cpu::residual_passes_test {
namespace {

constexpr int kClasses = 3;

model::Convolution same(int filters, int kernel) {
  return {.filters = filters, .kernel = kernel, .padding = model::Padding::same, .bias = false};
}

/// Two blocks; the second one's convolutions are 3x3, for Winograd kernels.
model::Graph residual(Shape image, bool own_source) {
  model::Graph graph(image);
  const int trunk = graph.add(same(32, 3));
  graph.add(model::BatchNorm{});
  const int normal = graph.add(model::Relu{});
  const int branch = graph.add(same(32, 3), "branch", {own_source ? trunk : normal});
  graph.add(model::Add{}, "sum", {trunk, branch});
  testing::add_layers(graph, model::BatchNorm{}, model::Relu{}, same(64, 3), model::BatchNorm{},
                      model::Relu{}, model::GlobalAveragePool{}, model::Dense{kClasses},
                      model::SoftmaxCrossEntropy{});
  return graph;
}

/// What computes a layer of one training step.
std::string algorithm_of(const std::string& name, const model::Graph& graph) {
  const auto backend = make_cpu_backend(1, {});
  testing::Trial trial(*backend, graph, {2});
  trial.train(testing::make_images(2, graph.nodes().front().dst, kClasses), {2});
  for (const compute::LayerTime& time : trial.program().layer_times()) {
    if (time.name == name) return time.algorithm;
  }
  return "not there";
}

TEST(ResidualPasses, ASumGoesWithTheConvolutionBeforeIt) {
  EXPECT_EQ(algorithm_of("sum", residual({12, 12, 3}, false)), "with the convolution");
}

/// Its gradient would be added to while the convolution still reads that of the sum.
TEST(ResidualPasses, NotWhereTheConvolutionReadsTheOtherPart) {
  EXPECT_EQ(algorithm_of("sum", residual({12, 12, 3}, true)), "own");
}

/// Threads cut the images into other pieces, and share them in other ways.
TEST(ResidualPasses, SumsAreTheSameBitsForAnyNumberOfThreads) {
  constexpr int kImages = 19;
  const Shape image{96, 88, 3};
  const model::Graph graph = residual(image, false);
  const testing::Samples samples = testing::make_images(kImages, image, kClasses);
  const auto outcome = [&](int threads, KernelChoice kernels) {
    const auto backend = make_cpu_backend(threads, kernels);
    testing::Trial trial(*backend, graph, {kImages});
    testing::Outcome made = trial.train(samples, {kImages});
    // Those of normalizations and moving statistics; the library sums gradients of the first
    // convolution by threads.
    for (std::size_t p = 0; p < made.gradients.size(); ++p) {
      const std::string& name = trial.program().layout().parameters[p].name;
      if (name.find("batch_normalization") == std::string::npos) made.gradients[p].clear();
    }
    return made;
  };
  for (const bool bf16 : {false, true}) {
    if (bf16 && !cpu_backend_has_bf16()) continue;
    const KernelChoice kernels{.winograd = true, .bf16 = bf16};
    const testing::Outcome one = outcome(1, kernels);
    const bool any = std::ranges::any_of(one.gradients, [](const auto& g) { return !g.empty(); });
    ASSERT_TRUE(any);
    for (const int threads : {2, 3, 5}) {
      const testing::Outcome several = outcome(threads, kernels);
      EXPECT_EQ(several.probabilities, one.probabilities) << threads << " threads, bf16 " << bf16;
      EXPECT_EQ(several.gradients, one.gradients) << threads << " threads, bf16 " << bf16;
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::residual_passes_test
