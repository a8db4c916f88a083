// Passes that are captured and repeated compute what those compute that are put together anew.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/backend.h"
#include "emulated/counts.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

using compute::Accumulate;
using compute::Phase;
using emulated::Counts;

constexpr int kAnswers = 7;
constexpr Shape kPicture{6, 6, 3};

/// With statistics that move, an addition, and dropout.
model::Graph network_with_memory() {
  model::Graph graph(kPicture);
  const int conv = graph.add(model::Convolution{4, 3}, "conv");
  graph.add(model::BatchNorm{}, "norm");
  graph.add(model::Add{}, "sum", {conv, conv + 1});
  graph.add(model::Relu{}, "relu");
  graph.add(model::Flatten{});
  graph.add(model::Dropout{0.4f}, "dropout");
  graph.add(model::Dense{kAnswers}, "dense");
  graph.add(model::SoftmaxCrossEntropy{}, "loss");
  return graph;
}

/// A program with its arenas, and what it says of passes.
class Passes {
 public:
  explicit Passes(bool captures) : backend_(make_device_backend({.captures = captures})) {
    const compute::CompileOptions options{Phase::train, {3, 2}};
    compute::Memory& memory = backend_->memory();
    program_ = backend_->compile(
        network_with_memory(), options, [&](const compute::ParameterLayout& layout) {
          weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
          gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
          return compute::Arenas{weights_.array(), gradients_.array()};
        });
    const auto& parameters = program_->layout().parameters;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<double> values(parameters[p].count);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<double>(i + 7 * p));
        if (parameters[p].name == "norm/moving_variance") values[i] = 1;
      }
      program_->parameters().from_canonical(p, values, weights_.array());
    }
  }

  void forward(int images, std::uint64_t step, Phase phase = Phase::train) {
    samples_ = testing::make_images(images, kPicture, kAnswers);
    for (auto& sample : samples_.samples) sample += static_cast<std::uint32_t>(step);
    for (auto& image : samples_.images) image[step % image.size()] ^= 0x55;
    std::vector<const std::uint8_t*> images_of_pass;
    for (const auto& image : samples_.images) images_of_pass.push_back(image.data());
    program_->forward({images_of_pass, samples_.labels, samples_.samples},
                      {phase, 11, step, phase == Phase::evaluate});
  }
  void backward(double scale, Accumulate accumulate) { program_->backward({scale, accumulate}); }
  std::vector<double> gradients() {
    return compute::read_numbers(backend_->memory(), gradients_.array());
  }

  std::vector<double> weights_with_statistics() {
    program_->publish_statistics();
    return compute::read_numbers(backend_->memory(), weights_.array());
  }

  compute::Program& program() { return *program_; }

 private:
  testing::Samples samples_;
  std::unique_ptr<compute::Backend> backend_;
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
};

/// Steps of two micro-batches of other sizes, each with its own images, dropout and scale.
std::vector<std::vector<double>> trained(bool captures) {
  Passes passes(captures);
  std::vector<std::vector<double>> seen;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const double scale = 1.0 / static_cast<double>(step + 2);
    passes.forward(3, step);
    passes.backward(scale, Accumulate::overwrite);
    passes.forward(2, step);
    passes.backward(scale, Accumulate::add);
    seen.push_back(passes.gradients());
    seen.push_back(passes.weights_with_statistics());
    const compute::Tally tally = passes.program().tally().wait();
    seen.push_back({tally.loss, tally.correct, tally.images, tally.among_five});
    passes.forward(2, step, Phase::evaluate);
    const auto probabilities = passes.program().probabilities();
    seen.emplace_back(probabilities.begin(), probabilities.end());
  }
  return seen;
}

TEST(Graphs, GiveTheBitsOfPassesThatAreNotCaptured) {
  const auto captured = trained(true);
  EXPECT_EQ(captured, trained(false));
  EXPECT_NE(captured[4], captured[0]);  // each step has its own gradients
  EXPECT_NE(captured[5], captured[1]);  // and statistics
}

Counts counts_of_pass(Passes& passes, std::uint64_t step) {
  const Counts before = emulated::counts();
  passes.forward(3, step);
  passes.backward(1, Accumulate::overwrite);
  passes.program().tally().wait();
  return difference(emulated::counts(), before);
}

/// What a pass after so many others takes.
Counts counts_of_pass(int before, bool captures) {
  Passes passes(captures);
  Counts counts;
  for (int pass = 0; pass <= before; ++pass) {
    counts = counts_of_pass(passes, static_cast<std::uint64_t>(pass));
  }
  return counts;
}

TEST(Graphs, AreMadeOfTheSecondPassAndRepeated) {
  EXPECT_EQ(counts_of_pass(0, true).graphs, 0u);  // brings kernels to the device
  EXPECT_EQ(counts_of_pass(1, true).graphs, 1u);
  const Counts captured = counts_of_pass(2, true), plain = counts_of_pass(2, false);
  EXPECT_EQ(captured.graphs, 1u);  // forward and backward together, and the facts of both once
  EXPECT_EQ(plain.graphs, 0u);
  EXPECT_EQ(captured.launches() + 1, plain.launches());
  EXPECT_EQ(captured.waits(), plain.waits());
}

double seconds_of(const compute::Program& program) {
  double sum = 0;
  for (const compute::LayerTime& layer : program.layer_times()) sum += layer.seconds();
  return sum;
}

TEST(Graphs, MakeWayForTimesOfLayersAndComeBack) {
  Passes passes(true);
  std::uint64_t step = 0;
  while (step < 2) counts_of_pass(passes, step++);
  EXPECT_EQ(seconds_of(passes.program()), 0);
  passes.program().time_layers(true);
  const Counts timed = counts_of_pass(passes, step++);
  EXPECT_EQ(timed.graphs, 0u);
  EXPECT_GT(timed.timed_events, 0u);
  const double seconds = seconds_of(passes.program());
  EXPECT_GT(seconds, 0);
  passes.program().time_layers(false);
  const Counts after = counts_of_pass(passes, step++);
  EXPECT_EQ(after.graphs, 1u);
  EXPECT_EQ(after.timed_events, 0u);
  EXPECT_EQ(seconds_of(passes.program()), seconds);
}

/// Somebody asks for the losses of a pass that no backward follows.
TEST(Graphs, ForwardAloneIsDoneWhenItIsAskedFor) {
  Passes passes(true);
  for (std::uint64_t step = 0; step < 3; ++step) {
    passes.forward(3, step);
    EXPECT_EQ(passes.program().tally().wait().images, 3);
    passes.forward(2, step);
    passes.forward(3, step);
    EXPECT_EQ(passes.program().tally().wait().images, 5);
  }
}

}  // namespace
}  // namespace cputrain::cuda
