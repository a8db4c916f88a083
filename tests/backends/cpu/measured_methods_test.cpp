// While a training measures which kernels are quickest, what it computes forward stays the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "tests/backends/trial.h"

namespace cputrain::cpu::measured_methods_test {
namespace {

constexpr Shape kImage{128, 128, 3};
constexpr int kClasses = 3, kImages = 8;

/// Both convolutions have more than 1e8 multiply-adds of 8 images: enough to be measured. The first
/// reads images.
model::Graph pooled_graph() {
  model::Graph graph(kImage);
  for (const int filters : {32, 64}) {
    testing::add_layers(graph, model::Convolution{.filters = filters, .kernel = 3}, model::Relu{},
                        model::MaxPool{});
  }
  testing::add_layers(graph, model::Flatten{}, model::Dense{kClasses},
                      model::SoftmaxCrossEntropy{});
  return graph;
}

/// What a program computes that goes by rule, and one that measures.
class MeasuredMethods : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ASSERT_TRUE(measured_.program().tuner().trying()); }

  void expect_the_same(const testing::Outcome& actual) const {
    EXPECT_EQ(actual.probabilities, expected_.probabilities);
    for (std::size_t p = 0; p < expected_.gradients.size(); ++p) {
      EXPECT_LE(testing::relative_distance(actual.gradients[p], expected_.gradients[p]), 1e-4) << p;
    }
  }

  const bool skips_ = GetParam();
  const model::Graph graph_ = pooled_graph();
  const testing::Samples images_ = testing::make_images(kImages, kImage, kClasses);
  const std::unique_ptr<compute::Backend> rules_ =
      make_cpu_backend(2, {.winograd = true, .skip_zeros = skips_});
  const std::unique_ptr<compute::Backend> measures_ =
      make_cpu_backend(2, {.winograd = true, .skip_zeros = skips_, .measure = true});
  const testing::Outcome expected_ =
      testing::Trial(*rules_, graph_, {kImages}).train(images_, {kImages});
  testing::Trial measured_{*measures_, graph_, {kImages}};
};

/// Ranks and jobs measure different things, but their losses are to agree.
TEST_P(MeasuredMethods, LeaveLossesBehindPoolsToTheLastBit) {
  for (int step = 0; measured_.program().tuner().trying() || step < 10; ++step) {
    ASSERT_LT(step, 100) << "trials do not end";
    SCOPED_TRACE(step);
    expect_the_same(measured_.train(images_, {kImages}));
  }
}

TEST_P(MeasuredMethods, TakeNoForwardFromWhatAnotherRankFound) {
  compute::Program& program = measured_.program();
  program.tuner().use_tuned_methods("ddd ddd");
  EXPECT_FALSE(program.tuner().trying());
  const std::string found = program.tuner().tuned_methods();
  // The rule keeps forward: the first layer has too few channels for Winograd, which pools others.
  EXPECT_EQ(found, skips_ ? "sdd wdd" : "ddd wdd");
  expect_the_same(measured_.train(images_, {kImages}));
}

INSTANTIATE_TEST_SUITE_P(SkippingZeros, MeasuredMethods, ::testing::Bool());

}  // namespace
}  // namespace cputrain::cpu::measured_methods_test
