// Mixed labels reach the loss of every backend, by way of a device's feed, too.
#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

namespace cputrain::testing::mixed_labels_test {
namespace {

class MixedLabels : public ::testing::TestWithParam<BackendUnderTest> {};

model::Graph network(int classes) {
  model::Graph graph({5, 6, 3});
  graph.add(model::Flatten{});
  graph.add(model::Dense{classes == 2 ? 1 : classes});
  if (classes == 2) {
    graph.add(model::SigmoidCrossEntropy{0.1f});
  } else {
    graph.add(model::SoftmaxCrossEntropy{0.1f});
  }
  return graph;
}

TEST_P(MixedLabels, HaveTheLossAndTheGradientsOfPlainLoops) {
  for (const int classes : {2, 7}) {
    selftest::Samples samples = selftest::make_images(6, {5, 6, 3}, classes);
    for (int i = 0; i < 6; ++i) {
      samples.mixed.push_back({(i * 2 + 1) % classes, 0.5f + 0.25f * static_cast<float>(i % 3),
                               0.125f * static_cast<float>(i)});
    }
    const auto outcome = [&](compute::Backend& backend, const selftest::Samples& of) {
      return selftest::Trial(backend, network(classes), {4, 2}).train(of, {4, 2});
    };
    const auto reference = reference::make_reference_backend(DType::f64);
    const auto backend = GetParam().make();
    const selftest::Outcome expected = outcome(*reference, samples);
    const selftest::Outcome actual = outcome(*backend, samples);
    const double tolerance = GetParam().tolerance;
    EXPECT_NEAR(actual.tally.loss, expected.tally.loss, tolerance * expected.tally.loss);
    for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
      EXPECT_LE(relative_distance(actual.gradients[p], expected.gradients[p]), tolerance) << p;
    }
    samples.mixed.clear();
    EXPECT_GT(std::abs(outcome(*backend, samples).tally.loss - expected.tally.loss), 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, MixedLabels, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::mixed_labels_test
