#include "emulated/device_fixture.h"
#include "emulated/test_kernels.h"

/// What a launch may ask for depends on the GPU that is emulated. Numbers: CUDA C++ Programming
/// Guide, "Technical Specifications per Compute Capability"; "A100" and "H100" whitepapers.
namespace cputrain::emulated {
namespace {

using Limits = OnDevice;

std::optional<std::string> launch(unsigned blocks, unsigned threads, std::size_t shared_bytes) {
  return message_of<Error>([&] {
    const cuda::OwnedStream stream;
    launch_idle(stream.get(), blocks, threads, shared_bytes);
    stream.synchronize();
  });
}

TEST_F(Limits, PropertiesAreTheGpus) {
  const cuda::DeviceProperties h100 = cuda::device_properties(0);
  EXPECT_EQ(h100.major, 9);
  EXPECT_EQ(h100.minor, 0);
  EXPECT_EQ(h100.multiprocessors, 132);
  EXPECT_EQ(h100.shared_memory, 232448u);
  EXPECT_TRUE(h100.emulated);
  restart({.gpu = Gpu::a100, .devices = 2});
  const cuda::DeviceProperties a100 = cuda::device_properties(1);
  EXPECT_EQ(a100.major, 8);
  EXPECT_EQ(a100.minor, 0);
  EXPECT_EQ(a100.multiprocessors, 108);
  EXPECT_EQ(a100.shared_memory, 166912u);
  EXPECT_NE(a100.identity, cuda::device_properties(0).identity);
  restart({.gpu = Gpu::b200});
  const cuda::DeviceProperties b200 = cuda::device_properties(0);
  EXPECT_EQ(b200.major, 10);
  EXPECT_EQ(b200.minor, 0);
  EXPECT_EQ(b200.multiprocessors, 148);
  restart({.gpu = Gpu::a100, .devices = 2});
  EXPECT_EQ(cuda::device_count(), 2);
  EXPECT_EQ(cuda::why_no_device(), "");
}

TEST_F(Limits, BlocksHave1024Threads) {
  EXPECT_FALSE(launch(1, 1024, 0));
  EXPECT_PRED2(contains, launch(1, 1025, 0).value_or(""), "blocks of 1025 threads");
  EXPECT_PRED2(contains, launch(1, 0, 0).value_or(""), "blocks of 0 threads");
  EXPECT_PRED2(contains, launch(0, 32, 0).value_or(""), "a grid of 0 x 1 x 1 blocks");
}

TEST_F(Limits, SharedMemoryIsTheGpus) {
  EXPECT_FALSE(launch(1, 32, 232448));
  EXPECT_PRED2(contains, launch(1, 32, 232449).value_or(""), "232449 bytes of shared memory");
  restart({.gpu = Gpu::a100});
  EXPECT_FALSE(launch(1, 32, 166912));
  EXPECT_PRED2(contains, launch(1, 32, 166913).value_or(""), "A100 has 166912");
}

TEST_F(Limits, ALaunchThatIsRefusedDoesNotFailTheDevice) {
  EXPECT_TRUE(launch(1, 1025, 0));
  EXPECT_FALSE(launch(1, 32, 0));
}

TEST_F(Limits, SharedVariablesHave48KiB) {
  const cuda::OwnedStream stream;
  launch_large_variables(stream.get());
  const auto message = message_of([&] { stream.synchronize(); });
  EXPECT_PRED2(contains, message.value_or(""), "too much shared memory: variables of 49408 bytes");
}

}  // namespace
}  // namespace cputrain::emulated
