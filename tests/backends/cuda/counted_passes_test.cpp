// How often a pass bothers the device and the host, as the emulated device counts it.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/backend.h"
#include "core/error.h"
#include "emulated/counts.h"
#include "emulated/settings.h"
#include "tests/backends/trial.h"
#include "tests/support/refusal.h"

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
  CountedPasses() {
    const compute::CompileOptions options{compute::Phase::train, {kImages}};
    compute::Memory& memory = backend_->memory();
    program_ = backend_->compile(network(), options, [&](const compute::ParameterLayout& layout) {
      weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
      gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
      return compute::Arenas{weights_.array(), gradients_.array()};
    });
    pass();  // the first one allocates
  }

  /// What it took; over images that `feed` has sent ahead, where there is one.
  Counts pass(
      bool probabilities = false, compute::ImageFeed* feed = nullptr,
      const compute::ReadySink& ready = [](std::size_t, compute::Event*) {}) {
    std::vector<const std::uint8_t*> images;
    for (const auto& image : samples_.images) images.push_back(image.data());
    compute::MicroBatch batch{images, samples_.labels, samples_.samples};
    const std::vector<compute::ImageMove> moves(kImages, compute::whole_image(0, kImage));
    if (feed) batch.staged = feed->stage(0, batch, moves);
    const Counts before = emulated::counts();
    program_->forward(batch, {compute::Phase::train, 1, 0, probabilities});
    program_->backward({.ready = ready});
    return difference(emulated::counts(), before);
  }

  testing::Samples samples_ = testing::make_images(kImages, kImage, kClasses);
  std::unique_ptr<compute::Backend> backend_ = make_device_backend();
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
};

double seconds_of(const std::vector<compute::LayerTime>& layers) {
  double sum = 0;
  for (const compute::LayerTime& layer : layers) sum += layer.seconds();
  return sum;
}

TEST_F(CountedPasses, TakeNoTimesWhereNobodyReadsThem) {
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
  program_->time_layers(true);
  const std::vector<compute::LayerTime> before = program_->layer_times();
  EXPECT_EQ(pass().timed_events, 2u * (5 + 5));
  const auto layers = compute::difference(program_->layer_times(), before);
  for (const compute::LayerTime& layer : layers) EXPECT_GT(layer.forward, 0) << layer.name;
  for (const std::size_t learns : {1u, 3u}) EXPECT_GT(layers[learns].backward_weights, 0);
  for (const std::size_t later : {2u, 3u, 4u}) EXPECT_GT(layers[later].backward_data, 0);
}

/// The program sends what nobody has sent ahead, and waits until its memory for that is free.
/// Backward notes the places behind the later of two layers that learn and at the end, and waits
/// for neither. Two events at the end of the pass: arrays and images are free again.
TEST_F(CountedPasses, TheHostWaitsForMemoryAlone) {
  const Counts c = pass();
  EXPECT_EQ(c.waits(), 1u);
  EXPECT_EQ(c.event_waits, 1u);
  EXPECT_EQ(c.untimed_events, 1u + 2 + 2);
}

TEST_F(CountedPasses, TheHostWaitsForNoImagesThatWereSentAhead) {
  const auto feed = backend_->feeder()->make_feed({.image = kImage, .images = kImages});
  program_->tally();
  const Counts c = pass(false, feed.get());
  EXPECT_EQ(c.waits(), 0u);
  EXPECT_EQ(c.untimed_events, 2u + 2);
}

/// Those of the later layer, without the rest of the pass, where the device does last what came
/// first.
TEST_F(CountedPasses, FinalGradientsAreReadWhileTheDeviceGoesOn) {
  program_->tally();
  const emulated::Settings settings = emulated::settings();
  emulated::Settings reverse = settings;
  reverse.order = emulated::Order::reverse;
  emulated::restart(reverse);
  const auto times_back = [] { return emulated::counts().kernels["relu_backward"].launches; };
  const std::uint64_t before = times_back();
  std::vector<std::uint64_t> done;
  pass(false, nullptr, [&](std::size_t n, compute::Event* after) {
    compute::wait_for(after);
    std::vector<std::byte> read(n * sizeof(float));
    backend_->memory().read_now(gradients_.array().data, read);
    done.push_back(times_back() - before);
  });
  emulated::restart(settings);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{0, 1}));
}

TEST_F(CountedPasses, SendWhatTheHostNeedsAndNoMore) {
  const auto until_sums_come = [&](bool probabilities) {
    program_->tally().wait();
    const Counts before = emulated::counts();
    pass(probabilities);
    program_->tally().wait();
    return difference(emulated::counts(), before);
  };
  constexpr std::size_t kSums = 4 * sizeof(double);
  const Counts few = until_sums_come(false), more = until_sums_come(true);
  EXPECT_EQ(few.to_device.calls, 1u);
  EXPECT_EQ(few.to_device.bytes, kImages * (kImage.size() + 4 + 4 + 32));  // label, sample, move
  EXPECT_EQ(few.to_host.calls, 1u);
  EXPECT_EQ(few.to_host.bytes, kSums);
  EXPECT_EQ(more.to_host.calls, 2u);
  EXPECT_EQ(more.to_host.bytes, kSums + kImages * kClasses * sizeof(float));
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
  program_->tally().wait();
  pass();
  pass();
  const Counts before = emulated::counts();
  EXPECT_EQ(program_->tally().wait().images, 2 * kImages);
  const Counts c = difference(emulated::counts(), before);
  EXPECT_EQ(c.to_host.calls, 1u);
  EXPECT_EQ(c.to_host.bytes, 4 * sizeof(double));
  EXPECT_EQ(c.waits(), 1u);
  EXPECT_EQ(program_->tally().wait().images, 0);
}

/// Those of a step are still there when the next step's are on their way, and no call but wait()
/// waits for them.
TEST_F(CountedPasses, SumsOfTwoStepsAreKeptApart) {
  program_->tally();
  pass();
  Counts before = emulated::counts();
  const auto first = program_->tally();
  EXPECT_EQ(difference(emulated::counts(), before).waits(), 0u);
  pass();
  pass();
  const auto second = program_->tally();
  before = emulated::counts();
  EXPECT_EQ(first.wait().images, kImages);
  EXPECT_EQ(difference(emulated::counts(), before).waits(), 1u);
  EXPECT_EQ(second.wait().images, 2 * kImages);
  EXPECT_GT(second.wait().loss, first.wait().loss);
}

/// From any memory of the host; only in staging memory does the copy not wait by itself.
TEST_F(CountedPasses, ArraysTakeOneCopyEachWay) {
  compute::Memory& memory = backend_->memory();
  const std::size_t bytes = 9 << 20;
  const compute::OwnedArray array(memory, bytes / sizeof(float), DType::f32);
  const auto staging = memory.staging(bytes);
  std::vector<std::byte> pageable(bytes);
  const auto counted = [&](std::span<std::byte> of_host) {
    std::ranges::fill(of_host, std::byte{7});
    const Counts before = emulated::counts();
    memory.write(of_host, array.array().data);
    std::ranges::fill(of_host, std::byte{8});
    memory.read(array.array().data, of_host);
    EXPECT_EQ(std::ranges::count(of_host, std::byte{7}), std::ssize(of_host));
    return difference(emulated::counts(), before);
  };
  const Counts at_once = counted(staging->bytes()), part = counted(staging->bytes().subspan(5));
  const Counts of_pageable = counted(pageable);
  for (const Counts& c : {at_once, part, of_pageable}) {
    EXPECT_EQ(c.to_device.calls, 1u);
    EXPECT_EQ(c.to_host.calls, 1u);
  }
  for (const Counts& c : {at_once, part}) EXPECT_EQ(c.waits(), 4u);  // for calls, and for copies
  EXPECT_EQ(of_pageable.copy_waits, 1u);
  EXPECT_EQ(of_pageable.waits(), 5u);
}

/// Those of an earlier pass would be taken for its own.
TEST_F(CountedPasses, HaveNoProbabilitiesUnlessTheySaidSo) {
  pass(true);
  pass();
  const std::string text =
      testing::refused(ExitCode::internal, [&] { (void)program_->probabilities(); });
  EXPECT_NE(text.find("loss: "), std::string::npos) << text;
}

}  // namespace
}  // namespace cputrain::cuda
