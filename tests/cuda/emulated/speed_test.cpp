#include <cstdio>
#include <ctime>

#include "emulated/device_fixture.h"
#include "emulated/shadow.h"
#include "emulated/test_kernels.h"

/// Prints what the emulated device manages on this machine: CPU time, since others may be busy too.
namespace cputrain::emulated {
namespace {

using Speed = OnDevice;

/// CPU seconds of what the stream holds.
double seconds_of(const cuda::OwnedStream& stream) {
  const std::clock_t begin = std::clock();
  stream.synchronize();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

const char* kind() { return kernels_are_checked() ? "checked" : "plain"; }

TEST_F(Speed, OfProductsOfWarpTiles) {
  constexpr unsigned kBlocks = 16, kThreads = 128;
  constexpr int kDepth = 512;
  const DeviceArray<float> out(kBlocks * kThreads, "out");
  const cuda::OwnedStream stream;
  const double products = launch_many_products(stream.get(), kBlocks, kDepth, out.data());
  const double seconds = seconds_of(stream);
  EXPECT_EQ(out.values(), std::vector<float>(kBlocks * kThreads, 64 * 0.5f * kDepth));
  std::printf("%s: %.2f GMAC/s of warp tiles of 64 x 32 in TF32\n", kind(),
              products / seconds / 1e9);
}

TEST_F(Speed, OfThreadsWithoutBarriers) {
  constexpr int kFloats = 200000;
  const DeviceArray<float> x(std::vector<float>(kFloats, 2), "x"), y(kFloats, "y");
  const cuda::OwnedStream stream;
  launch_scale(stream.get(), kFloats, nullptr, 3, x.data(), y.data());
  const double seconds = seconds_of(stream);
  EXPECT_EQ(y.values(), std::vector<float>(kFloats, 6));
  std::printf("%s: %.0f ns for a thread that reads a float and writes one\n", kind(),
              seconds / kFloats * 1e9);
}

TEST_F(Speed, OfLaunchesAndOfWaiting) {
  constexpr int kLaunches = 300;
  std::vector<cuda::DeviceBlock> others;
  for (int i = 0; i < 100; ++i) others.emplace_back(100000, "other");
  const DeviceArray<float> x(std::vector<float>(32, 2), "x"), y(32, "y");
  const cuda::OwnedStream stream;
  for (int i = 0; i < kLaunches; ++i) {
    launch_scale(stream.get(), 32, nullptr, 3, x.data(), y.data());
  }
  const double launches = seconds_of(stream);
  double waits = 0;
  for (int i = 0; i < 20; ++i) {
    launch_scale(stream.get(), 32, nullptr, 3, x.data(), y.data());
    waits += seconds_of(stream);
  }
  EXPECT_EQ(y.values(), std::vector<float>(32, 6));
  std::printf("%s: %.0f us a launch; %.0f us to wait for one, with 100 arrays of 100 kB\n", kind(),
              launches / kLaunches * 1e6, waits / 20 * 1e6);
}

}  // namespace
}  // namespace cputrain::emulated
