#include "emulated/counts.h"

#include <cstring>

#include "emulated/device_fixture.h"
#include "emulated/test_kernels.h"

namespace cputrain::emulated {
namespace {

constexpr int kElements = 300;
constexpr std::size_t kArrayBytes = kElements * sizeof(float);

class CountsTest : public OnDevice {
 protected:
  /// Since the arrays are there.
  Counts so_far() const { return difference(counts(), before_); }

  const cuda::OwnedStream stream_;
  const cuda::PinnedBlock host_{kArrayBytes};
  const DeviceArray<float> x_{std::vector<float>(kElements, 2), "x"};
  const DeviceArray<float> y_{std::vector<float>(kElements, 7), "y"};
  const Counts before_ = counts();
};

TEST_F(CountsTest, BeginWithNothing) {
  const Counts c = so_far();
  EXPECT_EQ(c.launches(), 0u);
  EXPECT_TRUE(c.kernels.empty());
  EXPECT_EQ(c.to_device.calls + c.to_host.calls + c.on_device.calls + c.cleared.calls, 0u);
  EXPECT_EQ(c.timed_events + c.untimed_events + c.graphs + c.waits(), 0u);
}

TEST_F(CountsTest, KernelsByNameOnceTheyAreDone) {
  for (int i = 0; i < 2; ++i) {
    launch_scale(stream_.get(), kElements, nullptr, 3, x_.data(), y_.data());  // blocks of 128
  }
  launch_idle(stream_.get(), 5, 32, 0);
  EXPECT_EQ(so_far().launches(), 0u);
  stream_.synchronize();
  const Counts c = so_far();
  EXPECT_EQ(c.launches(), 3u);
  ASSERT_EQ(c.kernels.size(), 2u);
  EXPECT_EQ(c.kernels.at("scale").launches, 2u);
  EXPECT_EQ(c.kernels.at("scale").blocks, 2u * 3);
  EXPECT_EQ(c.kernels.at("idle").launches, 1u);
  EXPECT_EQ(c.kernels.at("idle").blocks, 5u);
  EXPECT_EQ(c.stream_waits, 1u);
}

TEST_F(CountsTest, CopiesByTheirWays) {
  std::memset(host_.data(), 0, kArrayBytes);
  cuda::copy_async(x_.data(), host_.data(), 40, stream_.get());
  cuda::copy_async(x_.data(), host_.data(), 4, stream_.get());
  cuda::copy_async(y_.data(), x_.data(), 80, stream_.get());
  cuda::copy_async(host_.data(), x_.data(), kArrayBytes, stream_.get());
  cuda::copy_async(host_.data(), x_.data(), 0, stream_.get());
  cuda::clear_async(x_.data(), 12, stream_.get());
  stream_.synchronize();
  const Counts c = so_far();
  EXPECT_EQ(c.to_device.calls, 2u);
  EXPECT_EQ(c.to_device.bytes, 44u);
  EXPECT_EQ(c.on_device.calls, 1u);
  EXPECT_EQ(c.on_device.bytes, 80u);
  EXPECT_EQ(c.to_host.calls, 1u);
  EXPECT_EQ(c.to_host.bytes, kArrayBytes);
  EXPECT_EQ(c.cleared.calls, 1u);
  EXPECT_EQ(c.cleared.bytes, 12u);
  EXPECT_EQ(c.waits(), 1u);
}

TEST_F(CountsTest, EventsAndWhatTheHostWaitsFor) {
  cuda::Event untimed, timed(cuda::Event::timed);
  untimed.record(stream_.get());
  timed.record(stream_.get());
  untimed.record(stream_.get());
  untimed.hold_up(stream_.get());  // the device's own wait
  timed.synchronize();
  untimed.synchronize();
  std::vector<float> pageable(kElements);
  cuda::copy_async(pageable.data(), x_.data(), kArrayBytes, stream_.get());
  const Counts c = so_far();
  EXPECT_EQ(c.untimed_events, 2u);
  EXPECT_EQ(c.timed_events, 1u);
  EXPECT_EQ(c.event_waits, 2u);
  EXPECT_EQ(c.copy_waits, 1u);
  EXPECT_EQ(c.stream_waits, 0u);
}

TEST_F(CountsTest, WhatAGraphHoldsEachTimeThatItIsLaunched) {
  const cuda::Graph graph(stream_.get(), [&] {
    launch_scale(stream_.get(), kElements, nullptr, 3, x_.data(), y_.data());
    cuda::copy_async(host_.data(), y_.data(), 8, stream_.get());
  });
  stream_.synchronize();
  EXPECT_EQ(so_far().launches(), 0u);
  for (int i = 0; i < 3; ++i) graph.launch(stream_.get());
  stream_.synchronize();
  const Counts c = so_far();
  EXPECT_EQ(c.graphs, 3u);
  EXPECT_EQ(c.kernels.at("scale").launches, 3u);
  EXPECT_EQ(c.to_host.bytes, 24u);
}

TEST_F(CountsTest, AsJson) {
  launch_idle(stream_.get(), 5, 32, 0);
  cuda::copy_async(host_.data(), x_.data(), kArrayBytes, stream_.get());
  stream_.synchronize();
  std::string json = json_of(so_far());
  std::erase_if(json, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_EQ(
      json,
      R"({"launches":1,"kernels":{"idle":{"launches":1,"blocks":5}},"graphs":0,)"
      R"("copies":{"host_to_device":{"calls":0,"bytes":0},)"
      R"("device_to_host":{"calls":1,"bytes":1200},"device_to_device":{"calls":0,"bytes":0}},)"
      R"("clears":{"calls":0,"bytes":0},"events_recorded":{"timed":0,"untimed":0},)"
      R"("host_waits":{"stream":1,"event":0,"copy":0},"ranges":{}})");
}

TEST_F(CountsTest, KernelsThatAreSkippedCountAndChangeNothing) {
  restart({.runs_kernels = false});
  const DeviceArray<float> fresh(3, "fresh");
  EXPECT_EQ(fresh.values(), std::vector<float>(3, 0));
  launch_scale(stream_.get(), kElements, nullptr, 3, x_.data(), y_.data());
  stream_.synchronize();
  EXPECT_EQ(so_far().kernels.at("scale").launches, 1u);
  EXPECT_EQ(y_.values(), std::vector<float>(kElements, 7));
  EXPECT_PRED2(contains, cuda::device_properties(0).name, "kernels are skipped");
}

}  // namespace
}  // namespace cputrain::emulated
