// Training steps of a network with batch norm, `reference` in double against PyTorch in double:
// every weight and every moving statistic after them.

#include <gtest/gtest.h>

#include <string>

#include "backends/reference/reference_backend.h"
#include "golden/model_figures.h"
#include "golden/replica.h"

namespace cputrain::golden {
namespace {

constexpr double kTolerance = 1e-8;  // of a loss, or of a tensor's norm

void expect_steps(const ModelFigures& model, const ModelTraining& training) {
  const auto backend = make_reference_backend(DType::f64);
  Replica replica(*backend, model.graph, varied_start(model.seed), {training.batch});
  for (int step = 0; step < static_cast<int>(training.losses.size()); ++step) {
    const Pictures images(model.graph.image(), model.classes, model.seed, step * training.batch,
                          training.batch);
    const double loss = replica.step(images, &training.update, step).mean_loss();
    EXPECT_NEAR(loss, training.losses[step], kTolerance * loss) << "step " << step + 1;
  }
  ASSERT_EQ(training.tensors.size(), replica.parameters().size());
  for (std::size_t i = 0; i < training.tensors.size(); ++i) {
    SCOPED_TRACE(replica.parameters()[i].name);
    const Sums theirs = training.tensors[i];
    const Sums ours = sums(replica.weights(i), model.seed, name_key(replica.parameters()[i].name));
    EXPECT_NEAR(ours.norm, theirs.norm, kTolerance * theirs.norm);
    EXPECT_NEAR(ours.dot, theirs.dot, kTolerance * theirs.norm);
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
}  // namespace cputrain::golden
