#include <thread>

#include "emulated/device_fixture.h"
#include "emulated/test_kernels.h"

/// Several threads of the host use the device at once: ranks, or one that trains and one that
/// copies.
namespace cputrain::emulated {
namespace {

using Threads = OnDevice;

TEST_F(Threads, EachGetsWhatItComputed) {
  constexpr int kThreads = 4, kRounds = 10, kFloats = 300;
  restart({.order = Order::random, .seed = 9, .devices = 2});
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &problems] {
      cuda::use_device(t % 2);
      const cuda::OwnedStream stream;
      for (int round = 1; round <= kRounds; ++round) {
        const auto start = static_cast<float>(100 * t + round);
        const DeviceArray<float> x(std::vector<float>(kFloats, start), "x"), y(kFloats, "y");
        launch_scale(stream.get(), kFloats, nullptr, 2, x.data(), y.data());
        stream.synchronize();
        if (y.values() != std::vector<float>(kFloats, 2 * start)) {
          problems[static_cast<std::size_t>(t)] = "round " + std::to_string(round);
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(problems, std::vector<std::string>(kThreads));
}

TEST_F(Threads, OneMayWaitForWhatAnotherPut) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> x(std::vector<float>(10, 1), "x"), y(10, "y");
  cuda::Event done;
  std::thread([&] {
    launch_scale(stream.get(), 10, nullptr, 5, x.data(), y.data());
    done.record(stream.get());
  }).join();
  done.synchronize();
  EXPECT_EQ(y.values(), std::vector<float>(10, 5));
}

/// A capture forbids waiting to the thread that captures, not to others.
TEST_F(Threads, AnotherMayWaitDuringACapture) {
  const cuda::OwnedStream stream;
  const DeviceArray<float> x(std::vector<float>(10, 1), "x"), y(10, "y");
  const cuda::Graph graph(stream.get(), [&] {
    std::thread([&] { EXPECT_EQ(x.values(), std::vector<float>(10, 1)); }).join();
    launch_scale(stream.get(), 10, nullptr, 5, x.data(), y.data());
  });
  graph.launch(stream.get());
  stream.synchronize();
  EXPECT_EQ(y.values(), std::vector<float>(10, 5));
}

TEST_F(Threads, AllHearOfAFault) {
  const DeviceArray<float> x(std::vector<float>(64, 1), "x"), y(256, "y");
  const cuda::OwnedStream stream;
  launch_faulty("returns_before_barrier", stream.get(), {x.data(), y.data(), nullptr, nullptr});
  const auto here = message_of([&] { stream.synchronize(); });
  std::optional<std::string> there;
  std::thread([&] { there = message_of([&] { stream.synchronize(); }); }).join();
  EXPECT_TRUE(here);
  EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace cputrain::emulated
