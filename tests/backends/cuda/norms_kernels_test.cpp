#include <algorithm>
#include <numeric>

#include "backends/cuda/kernels/updates.h"
#include "optim/update_math.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

std::vector<double> norms_of(const std::vector<float>& values, std::size_t begin, std::size_t end,
                             std::size_t position) {
  const std::size_t size = end - begin;
  const std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                values.begin() + static_cast<std::ptrdiff_t>(end));
  return twice([&] {
    const DeviceArray<float> array(part, position % 4);
    const auto sums = DeviceArray<double>::poisoned(optim::norm_blocks(position + begin, size));
    block_norms(test_stream().get(), array.data(), size, position + begin, sums.data());
    return sums.read();
  });
}

/// Squares of each block of 4096 elements of the arena that the array touches, added up.
std::vector<double> plain_norms(const std::vector<float>& values, std::size_t position) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = (position + i) / 4096 - position / 4096;
    if (sums.size() <= block) sums.push_back(0);
    sums[block] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sums;
}

TEST(BlockNorms, AreExactForWholeNumbersWhereverTheArrayIsSplit) {
  for (const std::size_t size : {1, 7, 4096, 4097, 20001}) {
    std::vector<float> values = random_floats(size, 1, -100, 100);
    for (float& value : values) value = std::round(value);
    for (const std::size_t position : {0, 1, 4095, 4096, 5003}) {
      SCOPED_TRACE(std::to_string(size) + " at " + std::to_string(position));
      const auto whole = plain_norms(values, position);
      EXPECT_EQ(norms_of(values, 0, size, position), whole);
      for (const std::size_t cut : {size / 3, size / 2}) {
        if (cut == 0) continue;
        auto sums = norms_of(values, 0, cut, position);
        const auto rest = norms_of(values, cut, size, position);
        sums.resize(whole.size());
        const std::size_t first = whole.size() - rest.size();
        for (std::size_t i = 0; i < rest.size(); ++i) sums[first + i] += rest[i];
        EXPECT_EQ(sums, whole);
      }
    }
  }
}

TEST(BlockNorms, HaveTheDigitsOfDouble) {
  const auto values = random_floats(40001, 1);
  const auto actual = norms_of(values, 0, values.size(), 77), expected = plain_norms(values, 77);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-13 * expected[i]);
  }
}

}  // namespace
}  // namespace cputrain::cuda
