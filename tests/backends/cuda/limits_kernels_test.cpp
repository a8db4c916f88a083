#include "backends/cuda/kernels/limits.h"

#include "backends/cuda/selftest/plain_products.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

TEST(LimitsKernels, MultiplyWhatTheyCount) {
  constexpr int kProcessors = 2, kRounds = 3;
  const std::size_t size = multiply_add_sums(kProcessors);
  const auto sums = DeviceArray<float>::poisoned(size);
  launch_multiply_adds(test_stream().get(), kProcessors, kRounds, sums.data());
  const std::vector<float> found = sums.read();
  for (std::size_t i = 0; i < size; ++i) {
    const double expected = kRounds * sum_of_thread(static_cast<int>(i) % 256);
    ASSERT_NEAR(found[i], expected, 1e-5 * expected) << "thread " << i;
  }
  // Each warp multiplies 64 x 8 by 8 x 32 in a round.
  EXPECT_EQ(multiply_adds(kProcessors, kRounds),
            64.0 * 8 * 32 * static_cast<double>(size) / 32 * kRounds);
}

TEST(LimitsKernels, AddAsTheTriadDoes) {
  for (const std::size_t size : {1u, 255u, 1000u}) {
    std::vector<double> b(size), c(size);
    for (std::size_t i = 0; i < size; ++i) {
      b[i] = static_cast<double>(i);
      c[i] = static_cast<double>(2 * i + 1);
    }
    const auto a = DeviceArray<double>::poisoned(size);
    const DeviceArray<double> left(b), right(c);
    launch_triad(test_stream().get(), size, 3.0, left.data(), right.data(), a.data());
    const std::vector<double> found = a.read();
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(found[i], 3 + 7 * static_cast<double>(i));
  }
}

}  // namespace
}  // namespace cputrain::cuda
