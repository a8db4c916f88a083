#include "backends/cuda/kernels/limits.h"

#include <array>

#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

constexpr int kWarp = 32, kTilesEach = 4;

/// What the lanes of a warp whose first thread is number `first` begin with, put together as the
/// matrices that the tensor cores see (tensor_core.h): the rows of A and the columns of B.
struct Operands {
  std::array<std::array<double, 8>, 16 * kTilesEach> a;
  std::array<std::array<double, 8>, 8 * kTilesEach> b;
};

Operands operands_of(int first) {
  Operands made;
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane / 4, place = lane % 4, thread = first + lane;
    for (int i = 0; i < kTilesEach; ++i) {
      for (int k = 0; k < 4; ++k) {
        made.a[16 * i + group + k % 2 * 8][place + k / 2 * 4] = 1 + thread + 4 * i + k;
      }
      const float b = 0.5f / static_cast<float>(thread + 1 + i);
      // The nearest number of 11 bits.
      const double unit = std::ldexp(1.0, std::ilogb(b) - 10);
      made.b[8 * i + group][place] = std::round(static_cast<double>(b) / unit) * unit;
      made.b[8 * i + group][place + 4] = 0.25;
    }
  }
  return made;
}

/// The sum of what a lane holds of the products.
double sum_of_lane(const Operands& of, int lane) {
  double sum = 0;
  for (int i = 0; i < kTilesEach; ++i) {
    for (int j = 0; j < kTilesEach; ++j) {
      for (int r = 0; r < 4; ++r) {
        const auto& row = of.a[16 * i + lane / 4 + r / 2 * 8];
        const auto& column = of.b[8 * j + lane % 4 * 2 + r % 2];
        for (int k = 0; k < 8; ++k) sum += row[k] * column[k];
      }
    }
  }
  return sum;
}

TEST(LimitsKernels, MultiplyWhatTheyCount) {
  constexpr int kProcessors = 2, kRounds = 3;
  const std::size_t size = multiply_add_sums(kProcessors);
  const auto sums = DeviceArray<float>::poisoned(size);
  launch_multiply_adds(test_stream().get(), kProcessors, kRounds, sums.data());
  const std::vector<float> found = sums.read();
  for (std::size_t i = 0; i < size; ++i) {
    const int thread = static_cast<int>(i) % 256, lane = thread % kWarp;
    const double expected = kRounds * sum_of_lane(operands_of(thread - lane), lane);
    ASSERT_NEAR(found[i], expected, 1e-5 * expected) << "thread " << i;
  }
  // Each warp multiplies 64 x 8 by 8 x 32 in a round.
  EXPECT_EQ(multiply_adds(kProcessors, kRounds),
            64.0 * 8 * 32 * static_cast<double>(size) / kWarp * kRounds);
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
