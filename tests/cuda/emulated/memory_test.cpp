#include <csignal>
#include <cstring>
#include <set>

#include "emulated/device_fixture.h"
#include "emulated/shadow.h"
#include "emulated/test_kernels.h"

namespace cputrain::emulated {
namespace {

using DeviceMemory = OnDevice;
using DeviceMemoryDeathTest = OnDevice;

TEST_F(DeviceMemoryDeathTest, TheHostMayNotTouchIt) {
  const DeviceArray<float> weights(std::vector<float>(100, 1), "weights");
  const auto reads = [&] { return static_cast<volatile const float*>(weights.data())[3]; };
  EXPECT_EXIT((void)reads(), testing::KilledBySignal(SIGSEGV),
              "The host touches device memory: byte 12 of \"weights\", which has 400 bytes");
  EXPECT_EXIT(std::memset(weights.data() + 1, 0, 4), testing::KilledBySignal(SIGSEGV),
              "byte 4 of \"weights\"");
  EXPECT_EXIT(weights.data()[100] = 1, testing::KilledBySignal(SIGSEGV), "byte 400 of .weights.");
}

/// Behind the first 256 waits few are followed by a lock, but more than one in 20.
TEST_F(DeviceMemoryDeathTest, TheHostIsFoundAfterManyWaits) {
  const DeviceArray<float> weights(std::vector<float>(100, 1), "weights");
  const auto read_now_and_then = [&] {
    for (int i = 0; i < 300; ++i) (void)weights.values();
    for (int i = 0; i < 20; ++i) {
      (void)weights.values();
      (void)*static_cast<volatile const float*>(weights.data());
    }
  };
  EXPECT_EXIT(read_now_and_then(), testing::KilledBySignal(SIGSEGV), "byte 0 of \"weights\"");
}

TEST_F(DeviceMemory, BlocksAreOn256ByteBoundaries) {
  std::vector<cuda::DeviceBlock> blocks;
  std::set<const void*> addresses;
  for (const std::size_t bytes : {0u, 1u, 16u, 255u, 256u, 257u, 4096u, 5000u, 3000000u}) {
    blocks.emplace_back(bytes, "block");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data()) % 256, 0u);
    EXPECT_TRUE(addresses.insert(blocks.back().data()).second);
    EXPECT_EQ(blocks.back().size(), bytes);
  }
}

TEST_F(DeviceMemory, KernelsFindFreedMemoryGone) {
  const DeviceArray<float> y(256, "y");
  float* freed = nullptr;
  {
    const DeviceArray<float> x(std::vector<float>(64, 1), "old");
    freed = x.data();
  }
  const cuda::OwnedStream stream;
  launch_scale(stream.get(), 64, nullptr, 2, freed, y.data());
  const auto message = message_of([&] { stream.synchronize(); });
  EXPECT_PRED2(contains, message.value_or(""),
               "byte 0 of \"old\", which has 256 bytes and was freed");
}

TEST_F(DeviceMemory, CopiesStayInside) {
  const DeviceArray<float> x(std::vector<float>(10, 1), "x");
  std::vector<float> host(20, 1);
  const cuda::OwnedStream stream;
  const auto reads = message_of([&] { cuda::copy_async(host.data(), x.data(), 44, stream.get()); });
  EXPECT_EQ(reads.value_or(""), "copy: out of bounds read, byte 40 of \"x\", which has 40 bytes");
  restart({});
  const auto writes = message_of([&] {
    cuda::copy_async(x.data() + 8, host.data(), 12, stream.get());
    stream.synchronize();
  });
  EXPECT_EQ(writes.value_or(""), "copy: out of bounds write, byte 40 of \"x\", which has 40 bytes");
  restart({});
  const auto clears = message_of([&] {
    cuda::clear_async(x.data() - 1, 4, stream.get());
    stream.synchronize();
  });
  EXPECT_EQ(clears.value_or(""),
            "clear: out of bounds write, byte -4 of \"x\", which has 40 bytes");
}

TEST_F(DeviceMemory, CopiesToTheHostReadWhatWasWritten) {
  if (!kernels_are_checked()) GTEST_SKIP() << "nobody knows what was written";
  const DeviceArray<float> x(5000, "x");
  const cuda::OwnedStream stream;
  cuda::clear_async(x.data(), 4 * 4321, stream.get());
  stream.synchronize();
  EXPECT_FALSE(message_of([&] { (void)x.values(4321); }));
  EXPECT_EQ(message_of([&] { (void)x.values(4322); }).value_or(""),
            "copy: read of memory nobody wrote, byte 17284 of \"x\", which has 20000 bytes");
}

TEST_F(DeviceMemory, MemoryIsNaNAtFirst) {
  if (kernels_are_checked()) GTEST_SKIP() << "it may not be read";
  const DeviceArray<float> x(10, "x");
  for (const float f : x.values()) EXPECT_NE(f, f);
}

TEST_F(DeviceMemory, EndsWhereTheDeviceIsFull) {
  restart({.devices = 2, .memory = 1000});
  EXPECT_EQ(cuda::free_memory(), 1000u);
  auto first = std::make_optional<cuda::DeviceBlock>(600, "first");
  EXPECT_EQ(cuda::free_memory(), 400u);
  const auto message = message_of<Error>([] { const cuda::DeviceBlock second(401, "second"); });
  EXPECT_PRED2(contains, message.value_or(""), "out of memory on the emulated device");
  EXPECT_PRED2(contains, message.value_or(""), "\"second\" needs 401 bytes, 600 of 1000 are used");
  cuda::use_device(1);
  EXPECT_EQ(cuda::free_memory(), 1000u);
  cuda::use_device(0);
  const cuda::DeviceBlock third(400, "third");
  EXPECT_EQ(cuda::free_memory(), 0u);
  first.reset();
  EXPECT_EQ(cuda::free_memory(), 600u);
}

TEST_F(DeviceMemory, OthersDoNotGetAddressesThatWereFreedJustNow) {
  std::set<const void*> addresses;
  const DeviceArray<float> stays(std::vector<float>(10, 4), "stays");
  for (int i = 0; i < 50; ++i) {
    const cuda::DeviceBlock block(100000, "block");
    EXPECT_TRUE(addresses.insert(block.data()).second);
  }
  EXPECT_EQ(stays.values(), std::vector<float>(10, 4));
}

}  // namespace
}  // namespace cputrain::emulated
