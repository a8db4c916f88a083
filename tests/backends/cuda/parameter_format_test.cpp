#include "backends/cuda/parameter_format.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace cputrain::cuda {
namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  return numbers;
}

/// A kernel of 2 positions, 3 inputs and 2 outputs, by hand: number (p, i, o) is 100 p + 10 i + o
/// + 1.
TEST(ParameterFormat, AKernelHasItsOutputsFirst) {
  const PaddedFormat format = PaddedFormat::of_kernel(2, 3, 2);
  ASSERT_EQ(format.stored(), 8u * 2 * 8);
  const std::vector<float> canonical{1,   2,   11,  12,  21,  22,  //
                                     101, 102, 111, 112, 121, 122};
  std::vector<float> stored(format.stored(), -1.0f);
  format.from_canonical(canonical, stored);
  std::vector<float> expected(format.stored());
  expected[0] = 1, expected[1] = 11, expected[2] = 21;
  expected[8] = 101, expected[9] = 111, expected[10] = 121;
  expected[16] = 2, expected[17] = 12, expected[18] = 22;
  expected[24] = 102, expected[25] = 112, expected[26] = 122;
  EXPECT_EQ(stored, expected);
}

/// A kernel of 3 x 3, one input and one output: of a row two positions share a block, and the third
/// has one.
TEST(ParameterFormat, PairsOfARowShareABlock) {
  const PaddedFormat format = PaddedFormat::of_pairs(3, 1, 1);
  ASSERT_EQ(format.stored(), 8u * 3 * 16);
  EXPECT_EQ(format.columns(), 3u * 16);
  std::vector<float> stored(format.stored(), -1.0f), back(9), expected(format.stored());
  format.from_canonical(counted(9), stored);
  for (const std::size_t p : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    expected[p / 3 * 16 + p % 3 * 4] = static_cast<float>(p + 1);
  }
  EXPECT_EQ(stored, expected);
  format.to_canonical(stored, back);
  EXPECT_EQ(back, counted(9));
}

TEST(ParameterFormat, AVectorLiesAsItIs) {
  const PaddedFormat format = PaddedFormat::of_vector(9);
  ASSERT_EQ(format.stored(), 16u);
  std::vector<float> stored(16, -1.0f);
  format.from_canonical(counted(9), stored);
  std::vector<float> expected = counted(9);
  expected.resize(16);
  EXPECT_EQ(stored, expected);
}

/// Two rows of three filters, which lie as they are.
TEST(ParameterFormat, AKernelInGroupsHasItsFiltersLast) {
  const PaddedFormat format = PaddedFormat::of_groups(2, 3);
  ASSERT_EQ(format.stored(), 16u);
  EXPECT_EQ(format.columns(), 8u);
  std::vector<float> stored(16, -1.0f), back(6);
  format.from_canonical(counted(6), stored);
  EXPECT_EQ(stored, (std::vector<float>{1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0}));
  format.to_canonical(stored, back);
  EXPECT_EQ(back, counted(6));
}

TEST(ParameterFormat, ThereAndBack) {
  for (const auto& [positions, in, out] :
       std::vector<std::array<int, 3>>{{1, 1, 1}, {9, 3, 5}, {4, 8, 16}, {25, 21, 7}}) {
    const PaddedFormat format = PaddedFormat::of_kernel(positions, in, out);
    const auto canonical = counted(static_cast<std::size_t>(positions * in * out));
    std::vector<float> stored(format.stored(), -1.0f), back(canonical.size());
    format.from_canonical(canonical, stored);
    format.to_canonical(stored, back);
    EXPECT_EQ(back, canonical);
    EXPECT_EQ(std::accumulate(stored.begin(), stored.end(), 0.0),
              std::accumulate(canonical.begin(), canonical.end(), 0.0));  // the rest is zero
  }
}

}  // namespace
}  // namespace cputrain::cuda
