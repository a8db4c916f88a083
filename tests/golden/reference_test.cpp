// `reference` in double against PyTorch in double: five steps with every update rule.

#include <gtest/gtest.h>

#include <cmath>

#include "backends/reference/reference_backend.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/replica.h"

namespace cputrain::golden::reference_test {
namespace {

constexpr double kTolerance = 1e-8;  // of a loss, or of a tensor's norm

/// Compares every tensor of the network with what the file says of it.
template <class Values>
void expect_digests(const File& file, const std::vector<Digest>& expected, const char* what,
                    Values values) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Digest& theirs = expected[i];
    SCOPED_TRACE(std::string(what) + " of " + theirs.name);
    const Digest ours = digest(theirs, values(i), file.seed, static_cast<int>(i));
    const double tolerance = kTolerance * theirs.norm;
    EXPECT_NEAR(ours.norm, theirs.norm, tolerance);
    EXPECT_NEAR(ours.dot, theirs.dot, tolerance);
    for (std::size_t k = 0; k < theirs.at.size(); ++k) {
      EXPECT_NEAR(ours.values[k], theirs.values[k], tolerance) << "element " << theirs.at[k];
    }
  }
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, NamesAndInitialWeightsAreTheirs) {
  const File file = load(GetParam());
  const auto backend = reference::make_reference_backend(DType::f64);
  const Replica replica(*backend, file.graph, keras_start(file.seed), {1});
  ASSERT_EQ(replica.parameters().size(), file.start.size());
  for (std::size_t i = 0; i < file.start.size(); ++i) {
    EXPECT_EQ(replica.parameters()[i].name, file.start[i].name);
  }
  expect_digests(file, file.start, "initial value", [&](auto i) { return replica.weights(i); });
}

TEST_P(Golden, FiveStepsOfEveryRuleAreTheirs) {
  const File file = load(GetParam());
  ASSERT_EQ(file.trainings.size(), 7u);
  const auto backend = reference::make_reference_backend(DType::f64);
  for (const Training& training : file.trainings) {
    SCOPED_TRACE(training.name);
    // Two unequal pieces, so that gradients are also added up over micro-batches.
    Replica replica(*backend, file.graph, keras_start(file.seed), {file.batch - 3, 3});
    const auto gradients = [&](auto i) { return replica.gradients(i); };
    ASSERT_EQ(training.losses.size(), 5u);
    for (int step = 0; step < 5; ++step) {
      SCOPED_TRACE("step " + std::to_string(step + 1));
      const Samples images = samples(file, step * file.batch, file.batch);
      const compute::Tally tally = replica.step(images, &training.update, step);
      EXPECT_NEAR(tally.mean_loss(), training.losses[step], kTolerance * training.losses[step]);
      EXPECT_EQ(tally.correct, training.correct[step]);
      if (step == 0) expect_digests(file, file.first, "gradient", gradients);
    }
    expect_digests(file, training.last, "last gradient", gradients);
    expect_digests(file, training.weights, "last weights",
                   [&](auto i) { return replica.weights(i); });
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden, ::testing::Values("layers", "dogcat"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cputrain::golden::reference_test
