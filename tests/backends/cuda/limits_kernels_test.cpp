#include "backends/cuda/kernels/limits.h"

#include "backends/cuda/selftest/plain_products.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

class ProductKernels : public testing::TestWithParam<Numbers> {};

TEST_P(ProductKernels, MultiplyWhatTheyCount) {
  constexpr int kProcessors = 2, kRounds = 3;
  const std::size_t size = multiply_add_sums(kProcessors);
  const auto sums = DeviceArray<float>::poisoned(size);
  launch_multiply_adds(test_stream().get(), GetParam(), kProcessors, kRounds, sums.data());
  const std::vector<float> found = sums.read();
  for (std::size_t i = 0; i < size; ++i) {
    const double expected = kRounds * sum_of_thread(GetParam(), static_cast<int>(i) % 256);
    ASSERT_NEAR(found[i], expected, 1e-5 * expected) << "thread " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProductKernels,
                         testing::Values(Numbers::exact, Numbers::tf32, Numbers::bf16),
                         [](const auto& test) { return word_of(test.param); });

/// In a round each warp multiplies 64 x 8 numbers by 8 x 32, or 64 x 16 by 16 x 32 of bf16; three
/// such products are one of exact numbers.
TEST(LimitsKernels, CountTheProgramsNumbers) {
  constexpr int kProcessors = 2, kRounds = 3, kWarpsOfAProcessor = 16;
  constexpr double kTimes = kProcessors * kWarpsOfAProcessor * kRounds;
  EXPECT_EQ(multiply_adds(Numbers::exact, kProcessors, kRounds), kTimes * 64 * 8 * 32 / 3);
  EXPECT_EQ(multiply_adds(Numbers::tf32, kProcessors, kRounds), kTimes * 64 * 8 * 32);
  EXPECT_EQ(multiply_adds(Numbers::bf16, kProcessors, kRounds), kTimes * 64 * 16 * 32);
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
