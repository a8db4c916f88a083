#include "backends/cuda/kernels/products/gemm_slices.h"

#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

using Result = GemmResult<BiasAndAdd<ExactNumbers>>;

constexpr int kColumns = 8;

/// Small integers, whose sums are exact in every order.
std::vector<float> integers(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random() % 31) - 15;
  return values;
}

/// The sum of rows begin..end of a matrix of so many columns.
std::vector<float> column_sums(const std::vector<float>& matrix, std::size_t columns,
                               std::size_t begin, std::size_t end) {
  std::vector<float> sums(columns);
  for (std::size_t i = begin * columns; i < end * columns; ++i) sums[i % columns] += matrix[i];
  return sums;
}

TEST(LinesOfSum, AreAPowerOfTwoAndHaveSomeEightSlices) {
  EXPECT_EQ(lines_of_sum(1), 1);
  EXPECT_EQ(lines_of_sum(8), 1);
  EXPECT_EQ(lines_of_sum(9), 2);
  EXPECT_EQ(lines_of_sum(66), 16);
  EXPECT_EQ(lines_of_sum(256), 32);
  EXPECT_EQ(lines_of_sum(264), 32);
  EXPECT_EQ(lines_of_sum(10000), 32);
}

TEST(AddSlices, AddsAllOfThem) {
  for (const int slices : {1, 2, 7, 8, 9, 16, 17, 66, 256, 264, 300}) {
    for (const std::size_t size : {8u, 40u, 1024u, 2304u}) {
      const auto count = static_cast<std::size_t>(slices);
      const auto partials = integers(count * size, 3), bias = integers(kColumns, 4);
      const auto before = integers(size, 5);
      auto expected = column_sums(partials, size, 0, count);
      const DeviceArray<float> from(partials), of_bias(bias);
      auto to = DeviceArray<float>::poisoned(size);
      const auto numbers = static_cast<std::int64_t>(size);
      add_slices(test_stream().get(), Result{{to.data()}, from.data(), numbers}, slices, kColumns);
      EXPECT_EQ(to.read(), expected) << slices << " slices of " << size;

      const DeviceArray<float> more(before);
      add_slices(test_stream().get(),
                 Result{{more.data(), of_bias.data(), more.data()}, from.data(), numbers}, slices,
                 kColumns);
      for (std::size_t i = 0; i < size; ++i) expected[i] += bias[i % kColumns] + before[i];
      EXPECT_EQ(more.read(), expected) << slices << " slices of " << size << ", with bias";
    }
  }
}

/// Long sums of many slices, rounded the same way every time and close to the sum in double.
TEST(AddSlices, HaveTheSameBitsEveryTime) {
  constexpr std::size_t kSize = 72;
  constexpr int kSlices = 264;
  const auto partials = random_floats(kSize * kSlices, 6, 0);
  const DeviceArray<float> from(partials);
  const auto sums = twice([&] {
    auto to = DeviceArray<float>::poisoned(kSize);
    add_slices(test_stream().get(), Result{{to.data()}, from.data(), kSize}, kSlices, kColumns);
    return to.read();
  });
  for (std::size_t i = 0; i < kSize; ++i) {
    double sum = 0;
    for (std::size_t s = 0; s < kSlices; ++s) sum += partials[s * kSize + i];
    EXPECT_NEAR(sums[i] / sum, 1, 1e-6) << i;
  }
}

}  // namespace
}  // namespace cputrain::cuda
