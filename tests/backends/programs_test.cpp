#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/random/random.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// What programs promise beyond arithmetic: pieces of a batch, empty pieces, readiness, layouts.
namespace cputrain::testing::programs_test {
namespace {

constexpr Shape kImage{20, 22, 3};
constexpr int kClasses = 3;

/// Layers of every kind, odd numbers of channels, dropout in two places.
model::Graph mixed_graph() {
  return graph_of(
      kImage, model::Convolution{.filters = 16, .kernel = 3}, model::Relu{}, model::MaxPool{},
      model::Convolution{.filters = 21, .kernel = 3, .padding = model::Padding::same},
      model::Relu{}, model::Dropout{0.2f}, model::AveragePool{}, model::Flatten{}, model::Dense{9},
      model::Relu{}, model::Dropout{0.5f}, model::Dense{kClasses}, model::SoftmaxCrossEntropy{});
}

class Programs : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  std::unique_ptr<compute::Backend> backend_ = GetParam().make();
  model::Graph graph_ = mixed_graph();
  Samples images_ = make_images(7, kImage, kClasses);

  void expect_same(const Outcome& actual, const Outcome& expected) {
    const double tolerance = GetParam().tolerance;
    EXPECT_NEAR(actual.tally.loss, expected.tally.loss, tolerance * expected.tally.loss);
    EXPECT_EQ(actual.tally.correct, expected.tally.correct);
    EXPECT_EQ(actual.tally.images, expected.tally.images);
    ASSERT_EQ(actual.probabilities.size(), expected.probabilities.size());
    for (std::size_t i = 0; i < actual.probabilities.size(); ++i) {
      EXPECT_NEAR(actual.probabilities[i], expected.probabilities[i], tolerance);
    }
    for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
      EXPECT_LE(relative_distance(actual.gradients[p], expected.gradients[p]), tolerance) << p;
    }
  }
};

TEST_P(Programs, PiecesOfABatchAddUpToTheBatch) {
  Trial whole(*backend_, graph_, {7});
  Trial pieces(*backend_, graph_, {1, 3, 2});
  const Outcome expected = whole.train(images_, {7}, 2);
  expect_same(pieces.train(images_, {3, 3, 1}, 2), expected);
  expect_same(pieces.train(images_, {1, 1, 2, 3}, 2), expected);
  expect_same(pieces.train(images_, {0, 3, 0, 3, 1, 0}, 2), expected);
}

/// For few images a GPU cuts sums into more slices, which take more room: for one, 9 times that of
/// four images.
TEST_P(Programs, FewImagesMayNeedMoreRoomThanMany) {
  const model::Graph graph =
      graph_of(Shape{8, 8, 3}, model::Convolution{.filters = 8, .kernel = 3}, model::Relu{},
               model::Convolution{.filters = 64, .kernel = 3}, model::Flatten{},
               model::Dense{kClasses}, model::SoftmaxCrossEntropy{});
  const Samples samples = make_images(8, {8, 8, 3}, kClasses);
  Trial whole(*backend_, graph, {8}), pieces(*backend_, graph, {4, 3, 1});
  const Outcome expected = whole.train(samples, {8});
  expect_same(pieces.train(samples, {4, 3, 1}), expected);
  expect_same(pieces.train(samples, {1, 3, 4}), expected);
}

/// Evaluates seven images of class `label` after `value` was put into the bias of output `place`.
compute::Tally with_bias(compute::Backend& backend, const model::Graph& graph, std::size_t place,
                         double value, int label) {
  Trial trial(backend, graph, {7}, compute::Phase::evaluate);
  compute::Program& program = trial.program();
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].name != "dense_1/bias") continue;
    std::vector<double> bias = program.parameters().to_canonical(p, trial.weights());
    bias.at(place) = value;
    program.parameters().from_canonical(p, bias, trial.weights());
  }
  Samples samples = make_images(7, kImage, 2);
  samples.labels.assign(7, label);
  return trial.evaluate(samples, {7}).tally;
}

TEST_P(Programs, PredictionsThatAreNaNAreWrongWhateverTheLabel) {
  model::Graph sigmoid(kImage), softmax(kImage);
  for (model::Graph* graph : {&sigmoid, &softmax}) {
    graph->add(model::Flatten{});
    graph->add(model::Dense{4});
    graph->add(model::Relu{});
    graph->add(model::Dense{graph == &sigmoid ? 1 : kClasses});
  }
  sigmoid.add(model::SigmoidCrossEntropy{});
  softmax.add(model::SoftmaxCrossEntropy{});
  const double nan = std::nan("");
  for (int label = 0; label < 2; ++label) {
    EXPECT_EQ(with_bias(*backend_, sigmoid, 0, nan, label).correct, 0) << label;
    EXPECT_EQ(with_bias(*backend_, sigmoid, 0, label ? 1e3 : -1e3, label).correct, 7) << label;
  }
  for (int label = 0; label < kClasses; ++label) {
    for (std::size_t place = 0; place < kClasses; ++place) {
      for (const double value : {nan, HUGE_VAL}) {
        const compute::Tally tally = with_bias(*backend_, softmax, place, value, label);
        EXPECT_EQ(tally.correct, 0) << label << " " << place;
        EXPECT_EQ(tally.images, 7);
        EXPECT_FALSE(tally.accuracy());
      }
      const bool right = place == static_cast<std::size_t>(label);
      EXPECT_EQ(with_bias(*backend_, softmax, place, 1e3, label).correct, right ? 7 : 0);
    }
  }
}

TEST_P(Programs, TheSameCallGivesTheSameBits) {
  if (!GetParam().repeats) return;  // measurements choose the algorithms
  Trial first(*backend_, graph_, {4, 3}), second(*backend_, graph_, {3, 4});
  const Outcome a = first.train(images_, {4, 3}), b = second.train(images_, {4, 3});
  EXPECT_EQ(a.tally.loss, b.tally.loss);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(first.train(images_, {4, 3}).gradients, a.gradients);
}

TEST_P(Programs, DropoutHangsOnStepAndSampleAlone) {
  Trial trial(*backend_, graph_, {7, 1});
  const Outcome step5 = trial.train(images_, {7}, 5);
  const Outcome step6 = trial.train(images_, {7}, 6);
  EXPECT_NE(step5.tally.loss, step6.tally.loss);
  expect_same(trial.train(images_, {1, 1, 1, 1, 1, 1, 1}, 5), step5);
}

TEST_P(Programs, EvaluationInATrainingProgramDropsNothing) {
  Trial train(*backend_, graph_, {7});
  Trial evaluate(*backend_, graph_, {7}, compute::Phase::evaluate);
  expect_same(train.evaluate(images_, {7}), evaluate.evaluate(images_, {7}));
}

TEST_P(Programs, NoImagesClearOrKeepGradients) {
  Trial trial(*backend_, graph_, {7});
  const Outcome full = trial.train(images_, {7});
  compute::Program& program = trial.program();
  const auto backward = [&](compute::Accumulate accumulate) {
    program.forward({}, {compute::Phase::train, 1, 0, true});
    EXPECT_EQ(program.tally().wait().images, 0);
    EXPECT_TRUE(program.probabilities().empty());
    std::size_t ready = 0;
    program.backward({1, accumulate, [&](std::size_t n, compute::Event*) { ready = n; }});
    EXPECT_EQ(ready, program.layout().gradient_size);
  };
  backward(compute::Accumulate::add);
  EXPECT_EQ(program.parameters().to_canonical(0, trial.gradients()), full.gradients[0]);
  backward(compute::Accumulate::overwrite);
  const std::vector<double> zeros(full.gradients[0].size());
  EXPECT_EQ(program.parameters().to_canonical(0, trial.gradients()), zeros);
}

/// Read where they are said to be final, without waiting for what a device is at then.
TEST_P(Programs, ReadyGradientsAreFinal) {
  Trial trial(*backend_, graph_, {7});
  trial.train(images_, {7});
  compute::Program& program = trial.program();
  std::vector<const std::uint8_t*> images;
  for (const auto& image : images_.images) images.push_back(image.data());
  program.forward({images, images_.labels, images_.samples}, {compute::Phase::train, 3, 3});

  const Array gradients = trial.gradients();
  std::vector<std::byte> at_that_time(gradients.bytes().size());
  std::size_t read = 0;
  std::vector<std::size_t> calls;
  const auto sink = [&](std::size_t n, compute::Event* after) {
    ASSERT_GE(n, read);
    calls.push_back(n);
    compute::wait_for(after);
    const Array part = gradients.slice(std::exchange(read, n), n);
    const auto offset = part.bytes().data() - gradients.bytes().data();
    backend_->memory().read_now(
        part.data,
        std::span(at_that_time).subspan(static_cast<std::size_t>(offset), part.bytes().size()));
  };
  program.backward({.ready = sink});
  ASSERT_GE(calls.size(), 4u);  // every layer with weights tells
  EXPECT_EQ(calls.back(), program.layout().gradient_size);
  std::vector<std::byte> at_the_end(at_that_time.size());
  backend_->memory().read(gradients.data, at_the_end);
  EXPECT_EQ(at_that_time, at_the_end);
}

TEST_P(Programs, CanonicalLayoutRoundTrips) {
  Trial trial(*backend_, graph_, {2});
  compute::Program& program = trial.program();
  std::vector<double> stored_sum(program.layout().parameters.size());
  for (std::size_t p = 0; p < stored_sum.size(); ++p) {
    std::vector<double> values(program.layout().parameters[p].count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(i % 1021 + 1 + 7 * p);  // exact in float, never 0
    }
    program.parameters().from_canonical(p, values, trial.weights());
    EXPECT_EQ(program.parameters().to_canonical(p, trial.weights()), values);
  }
}

/// Padding must stay zero, or it would leak into sums and hashes.
TEST_P(Programs, StoredParametersHoldNothingElse) {
  Trial trial(*backend_, graph_, {2});
  compute::Program& program = trial.program();
  if (program.layout().dtype != DType::f32) return;
  trial.train(images_, {2, 2});
  for (std::size_t p = 0; p < program.layout().parameters.size(); ++p) {
    const compute::Parameter& parameter = program.layout().parameters[p];
    const auto stored = trial.gradients().slice(parameter.range.begin, parameter.range.end);
    const auto canonical = program.parameters().to_canonical(p, trial.gradients());
    const auto nonzero = [](const auto& values) {
      return std::count_if(values.begin(), values.end(), [](auto v) { return v != 0; });
    };
    EXPECT_EQ(nonzero(compute::read_numbers(backend_->memory(), stored)), nonzero(canonical))
        << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Programs, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::programs_test
