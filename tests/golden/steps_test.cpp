// Training steps of a network with batch norm, `reference` in double against PyTorch in double:
// how every weight and every moving statistic changed.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backends/reference/reference_backend.h"
#include "tests/golden/model_figures.h"
#include "tests/golden/replica.h"

namespace cputrain::golden::steps_test {
namespace {

constexpr double kTolerance = 1e-8;  // of a loss, or of the norm of a tensor's change
/// Rounding of a change that is 0 in truth (a bias whose shift the next batch norm removes), of the
/// tensor's norm.
constexpr double kNoise = 1e-13;

Replica trained(compute::Backend& backend, const ModelFigures& model,
                const ModelTraining& training) {
  Replica replica(backend, model.graph, varied_start(model.seed), {training.batch});
  for (int step = 0; step < static_cast<int>(training.losses.size()); ++step) {
    const Samples images(model.graph.image(), model.classes, model.seed, step * training.batch,
                         training.batch);
    const double loss = replica.step(images, &training.update, step).mean_loss();
    EXPECT_NEAR(loss, training.losses[step], kTolerance * loss) << "step " << step + 1;
  }
  return replica;
}

void expect_steps(const ModelFigures& model, const ModelTraining& training) {
  const auto backend = reference::make_reference_backend(DType::f64);
  const Replica replica = trained(*backend, model, training);
  ASSERT_EQ(training.changes.size(), replica.parameters().size());
  std::size_t i = 0;
  for (const auto& node : model.graph.nodes()) {
    for (const model::ParameterSpec& spec : node.parameters) {
      SCOPED_TRACE(spec.name);
      const std::vector<double> start = start_values(spec, model.seed);
      std::vector<double> change = replica.weights(i);
      std::ranges::transform(change, start, change.begin(), std::minus<>());
      const Sums theirs = training.changes[i++];
      const Sums ours = sums(change, model.seed, name_key(spec.name));
      const double norm = difference(start, start).norm;
      const double tolerance = kTolerance * theirs.norm + kNoise * norm;
      EXPECT_NEAR(ours.norm, theirs.norm, tolerance);
      EXPECT_NEAR(ours.dot, theirs.dot, tolerance);
    }
  }
}

TEST(ResNet50V2, StepsWithSgdArePyTorchs) {
  const ModelFigures model = load_model("resnet50v2");
  ASSERT_EQ(model.trainings.size(), 2u);
  ASSERT_EQ(model.trainings[0].losses.size(), 5u);
  expect_steps(model, model.trainings[0]);
}

TEST(ResNet50V2, StepsWithMomentumArePyTorchs) {
  const ModelFigures model = load_model("resnet50v2");
  ASSERT_EQ(model.trainings.size(), 2u);
  ASSERT_GE(model.trainings[1].losses.size(), 2u);  // the second step shows the momentum
  expect_steps(model, model.trainings[1]);
}

}  // namespace
}  // namespace cputrain::golden::steps_test
