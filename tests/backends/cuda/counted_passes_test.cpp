// How often a pass bothers the device and the host, as the emulated device counts it.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "core/error.h"
#include "emulated/counts.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

using emulated::Counts;

constexpr int kImages = 3, kClasses = 7;
constexpr Shape kImage{6, 6, 3};

model::Graph network() {
  model::Graph graph(kImage);
  graph.add(model::Convolution{4, 3}, "conv");
  graph.add(model::Relu{}, "relu");
  graph.add(model::Flatten{});
  graph.add(model::Dense{kClasses}, "dense");
  graph.add(model::SoftmaxCrossEntropy{}, "loss");
  return graph;
}

class CountedPasses : public ::testing::Test {
 protected:
  void compile(bool times_layers) {
    compute::CompileOptions options{compute::Phase::train, {kImages}};
    options.times_layers = times_layers;
    compute::Memory& memory = backend_->memory();
    program_ = backend_->compile(network(), options, [&](const compute::ParameterLayout& layout) {
      weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
      gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
      return compute::Arenas{weights_.array(), gradients_.array()};
    });
    pass();  // the first one allocates
  }

  /// What it took; over images that `feed` has sent ahead, where there is one.
  Counts pass(bool probabilities = false, compute::ImageFeed* feed = nullptr) {
    std::vector<const std::uint8_t*> images;
    for (const auto& image : samples_.images) images.push_back(image.data());
    compute::MicroBatch batch{images, samples_.labels, samples_.samples};
    const std::vector<compute::ImageMove> moves(kImages, compute::whole_image(0, kImage));
    if (feed) batch.staged = feed->stage(0, batch, moves);
    const Counts before = emulated::counts();
    program_->forward(batch, {compute::Phase::train, 1, 0, probabilities});
    program_->backward(1, compute::Accumulate::overwrite, [](std::size_t) {});
    return difference(emulated::counts(), before);
  }

  testing::Samples samples_ = testing::make_images(kImages, kImage, kClasses);
  std::unique_ptr<compute::Backend> backend_ = make_device_backend(0, 1);
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
};

double seconds_of(const std::vector<compute::LayerTime>& layers) {
  double sum = 0;
  for (const compute::LayerTime& layer : layers) sum += layer.seconds();
  return sum;
}

TEST_F(CountedPasses, TakeNoTimesWhereNobodyReadsThem) {
  compile(false);
  EXPECT_EQ(pass().timed_events, 0u);
  const std::vector<compute::LayerTime> layers = program_->layer_times();
  ASSERT_EQ(layers.size(), 5u);
  EXPECT_EQ(layers[1].name, "conv");
  EXPECT_EQ(layers[1].macs, 4 * 4 * 4 * 27);
  EXPECT_FALSE(layers[1].algorithm.empty());
  EXPECT_EQ(seconds_of(layers), 0);
}

/// Two events around each of five ways forward and five back: the images' gradient is left out.
TEST_F(CountedPasses, TakeTimesOfEveryLayerWhereSomebodyAsked) {
  compile(true);
  const std::vector<compute::LayerTime> before = program_->layer_times();
  EXPECT_EQ(pass().timed_events, 2u * (5 + 5));
  const auto layers = compute::difference(program_->layer_times(), before);
  for (const compute::LayerTime& layer : layers) EXPECT_GT(layer.forward, 0) << layer.name;
  for (const std::size_t learns : {1u, 3u}) EXPECT_GT(layers[learns].backward_weights, 0);
  for (const std::size_t later : {2u, 3u, 4u}) EXPECT_GT(layers[later].backward_data, 0);
}

/// Forward waits until its memory for copies is free; backward behind the later of two layers that
/// learn and at the end. Two events at the end of each call: arrays and images are free again.
TEST_F(CountedPasses, TheHostWaitsForGradients) {
  compile(false);
  const Counts c = pass();
  EXPECT_EQ(c.stream_waits, 1u);
  EXPECT_EQ(c.event_waits, 1u + 1);
  EXPECT_EQ(c.copy_waits, 0u);
  EXPECT_EQ(c.untimed_events, 1u + 1 + 2 * 2);
}

TEST_F(CountedPasses, TheHostWaitsForNoImagesThatWereSentAhead) {
  compile(false);
  const auto feed = backend_->feeder()->make_feed({.image = kImage, .images = kImages});
  const Counts c = pass(false, feed.get());
  EXPECT_EQ(c.stream_waits, 1u);
  EXPECT_EQ(c.event_waits, 1u);
  EXPECT_EQ(c.untimed_events, 1u + 2 * 2);
  EXPECT_EQ(c.to_device.calls, 1u);
}

TEST_F(CountedPasses, SendWhatTheHostNeedsAndNoMore) {
  compile(false);
  const Counts few = pass(), more = pass(true);
  EXPECT_EQ(few.to_device.calls, 1u);
  EXPECT_EQ(few.to_device.bytes, kImages * (kImage.size() + 4 + 4 + 32));  // label, sample, move
  EXPECT_EQ(few.to_host.calls, 0u);
  EXPECT_EQ(more.to_host.calls, 1u);
  EXPECT_EQ(more.to_host.bytes, kImages * kClasses * sizeof(float));
  EXPECT_EQ(more.waits(), few.waits());
  const auto probabilities = program_->probabilities();
  ASSERT_EQ(probabilities.size(), std::size_t{kImages * kClasses});
  for (int i = 0; i < kImages; ++i) {
    double sum = 0;
    for (const float p : probabilities.subspan(static_cast<std::size_t>(i * kClasses), kClasses)) {
      sum += static_cast<double>(p);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

/// Sums of all passes since the last time: one copy, and one wait.
TEST_F(CountedPasses, SumsComeOnceWhenTheyAreAskedFor) {
  compile(false);
  program_->tally();
  pass();
  pass();
  const Counts before = emulated::counts();
  EXPECT_EQ(program_->tally().images, 2 * kImages);
  const Counts c = difference(emulated::counts(), before);
  EXPECT_EQ(c.to_host.calls, 1u);
  EXPECT_EQ(c.to_host.bytes, 4 * sizeof(double));
  EXPECT_EQ(c.waits(), 1u);
  EXPECT_EQ(program_->tally().images, 0);
}

/// Those of an earlier pass would be taken for its own.
TEST_F(CountedPasses, HaveNoProbabilitiesUnlessTheySaidSo) {
  compile(false);
  pass(true);
  pass();
  try {
    (void)program_->probabilities();
    ADD_FAILURE() << "probabilities of another pass";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_NE(std::string(error.what()).find("loss: "), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cputrain::cuda
