// While a training measures which kernels are quickest, what it computes forward stays the same.
#include <gtest/gtest.h>

#include "backend/trial.h"
#include "backends/cpu/cpu_backend.h"

namespace cputrain::testing {
namespace {

constexpr Shape kImage{64, 64, 3};
constexpr int kClasses = 3, kImages = 8;

/// The second convolution has 1.2e8 multiply-adds of 8 images: enough to be measured.
Graph pooled_graph() {
  Graph graph(kImage);
  for (const int filters : {32, 64}) {
    graph.add(Convolution{.filters = filters, .kernel = 3});
    graph.add(Relu{});
    graph.add(MaxPool{});
  }
  graph.add(Flatten{});
  graph.add(Dense{kClasses});
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

/// Ranks and jobs measure different things, but their losses are to agree.
TEST(MeasuredMethods, LeaveLossesBehindPoolsToTheLastBit) {
  const auto measures =
      make_cpu_backend(2, {.winograd = true, .skip_zeros = true, .measure = true});
  const auto goes_by_rule = make_cpu_backend(2, {.winograd = true, .skip_zeros = true});
  const Graph graph = pooled_graph();
  const Pictures pictures = make_pictures(kImages, kImage, kClasses);
  Trial measured(*measures, graph, {kImages}), ruled(*goes_by_rule, graph, {kImages});
  const Outcome expected = ruled.train(pictures, {kImages});
  ASSERT_TRUE(measured.program().trying());
  for (int step = 0; measured.program().trying() || step < 10; ++step) {
    ASSERT_LT(step, 100) << "trials do not end";
    const Outcome actual = measured.train(pictures, {kImages});
    EXPECT_EQ(actual.probabilities, expected.probabilities) << "step " << step;
    for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
      EXPECT_LE(relative_distance(actual.gradients[p], expected.gradients[p]), 1e-4) << p;
    }
  }
}

}  // namespace
}  // namespace cputrain::testing
