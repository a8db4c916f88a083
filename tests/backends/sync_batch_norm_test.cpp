#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "data/batch_plan.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Batch normalization over the images of all ranks: five images on 1 to 7 ranks, so that some have
/// none, give the gradients and moving statistics of five images on one.
namespace cputrain::testing::sync_batch_norm_test {
namespace {

constexpr Shape kImage{9, 8, 3};
constexpr int kImages = 5, kClasses = 3;

model::Graph network() {
  model::Graph graph(kImage);
  const int trunk = graph.add(model::Convolution{.filters = 16, .kernel = 3, .bias = false});
  graph.add(model::BatchNorm{.momentum = 0.8f});
  graph.add(model::Relu{});
  graph.add(model::Convolution{
      .filters = 16, .kernel = 3, .padding = model::Padding::same, .bias = false});
  const int residual = graph.add(model::BatchNorm{});
  graph.add(model::Add{}, "", {trunk, residual});
  graph.add(model::GlobalAveragePool{});
  graph.add(model::Dense{kClasses});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

Samples slice_of(const Samples& all, Range mine) {
  Samples part;
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    part.images.push_back(all.images[i]);
    part.labels.push_back(all.labels[i]);
    part.samples.push_back(all.samples[i]);
  }
  return part;
}

/// One step of a rank: its part of the gradients of the mean loss, and the statistics after it.
Outcome step_of_rank(compute::Backend& backend, comm::Communicator& communicator,
                     const Samples& all) {
  const Range mine = data::share(kImages, communicator.rank(), communicator.size());
  const Samples part = slice_of(all, mine);
  const int count = static_cast<int>(mine.size());
  Trial trial(backend, network(), {std::max(count, 1)}, compute::Phase::train, &communicator);
  return trial.train(part, {count}, 0, kImages);
}

class SyncBatchNorm : public ::testing::TestWithParam<BackendUnderTest> {};

TEST_P(SyncBatchNorm, DoesNotDependOnHowImagesAreSplit) {
  if (!GetParam().runs(network())) return expect_refusal(GetParam(), network());
  const Samples samples = make_images(kImages, kImage, kClasses);
  const auto reference = reference::make_reference_backend(DType::f64);
  Trial whole(*reference, network(), {kImages});
  Outcome expected = whole.train(samples, {kImages});
  const auto& parameters = whole.program().layout().parameters;
  for (const int ranks : {1, 2, 3, 7}) {
    std::mutex mutex;
    std::vector<Outcome> outcomes;
    threads::run_ranks(ranks, [&](comm::Communicator& communicator) {
      const auto backend = GetParam().make();
      Outcome outcome = step_of_rank(*backend, communicator, samples);
      const std::lock_guard lock(mutex);
      outcomes.push_back(std::move(outcome));
    });
    double loss = 0;
    for (const Outcome& outcome : outcomes) loss += outcome.tally.loss;
    EXPECT_NEAR(loss, expected.tally.loss, GetParam().tolerance * loss) << ranks;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<double> sum(expected.gradients[p].size());
      for (const Outcome& outcome : outcomes) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += outcome.gradients[p][i];
      }
      const double times = parameters[p].learnt ? 1.0 : 1.0 / ranks;
      for (double& value : sum) value *= times;
      EXPECT_LE(relative_distance(sum, expected.gradients[p]), 10 * GetParam().tolerance)
          << parameters[p].name << " on " << ranks << " ranks";
      if (parameters[p].learnt) continue;
      for (const Outcome& outcome : outcomes) {  // the same bits on every rank
        EXPECT_EQ(outcome.gradients[p], outcomes[0].gradients[p]) << parameters[p].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, SyncBatchNorm, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(NarrowBackends, SyncBatchNorm,
                         ::testing::ValuesIn(narrow_backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::sync_batch_norm_test
