#include "backends/cpu/kernels/max_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/cpu/kernels/lanes.h"
#include "core/random/random.h"

namespace cputrain::cpu::max_pool_test {
namespace {

constexpr int kImages = 3;

/// From -1 to 1 in steps that make ties.
std::vector<float> random_numbers(std::size_t count) {
  const RandomStream random(7, Purpose::noise);
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random.at(i)[0] % 21) / 10 - 1);
  }
  return numbers;
}

/// The same map with all channels of a pixel side by side.
std::vector<float> channels_last(const compute::SampleLayout& layout,
                                 const std::vector<float>& map) {
  std::vector<float> turned(map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::size_t image = i / layout.size(), canonical = i % layout.size();
    turned[i] = map[image * layout.size() + layout.position(canonical)];
  }
  return turned;
}

struct Case {
  int block, channels, size, stride;
  model::PadAmount pad;
};

TEST(MaxPool, ReadsChannelsLastAsItReadsBlocks) {
  for (const Case& c :
       {Case{16, 16, 2, 2, {0, 0}}, Case{16, 48, 2, 2, {0, 0}}, Case{16, 32, 3, 2, {0, 1}},
        Case{8, 24, 2, 2, {0, 0}}, Case{8, 40, 3, 1, {1, 1}}}) {
    SCOPED_TRACE(c.channels);
    const auto outputs = [&](int n) {
      return (n + c.pad.before + c.pad.after - c.size) / c.stride + 1;
    };
    const compute::SampleLayout src{{9, 13, c.channels}, c.block};
    const compute::SampleLayout dst{{outputs(9), outputs(13), c.channels}, c.block};
    const MaxPoolShape shape{src, dst, c.size, c.stride, c.pad, c.pad, true};
    const std::vector<float> map = random_numbers(kImages * src.size());
    const std::vector<float> turned = channels_last(src, map);
    const std::size_t results = kImages * dst.size();
    std::vector<float> from_blocks(results, -9), from_pixels(results, -8);
    std::vector<std::uint8_t> winners(results, 98), same_winners(results, 99);

    max_pool(shape, kImages, map.data(), MapForm::blocked, from_blocks.data(), winners.data());
    max_pool(shape, kImages, turned.data(), MapForm::channels_last, from_pixels.data(),
             same_winners.data());

    EXPECT_EQ(from_blocks, from_pixels);
    EXPECT_EQ(winners, same_winners);
  }
}

/// The last NaN of a window wins, as in PyTorch, in every lane and beside infinity; else the first
/// of the largest.
TEST(MaxPool, NaNWins) {
  const float numbers[] = {std::nanf(""), HUGE_VALF, -HUGE_VALF, 0, -1};
  for (int i = 0; i < 625; ++i) {
    const float window[] = {numbers[i % 5], numbers[i / 5 % 5], numbers[i / 25 % 5],
                            numbers[i / 125]};
    int place = 0;
    for (int k = 1; k < 4; ++k) {
      if (window[k] > window[place] || std::isnan(window[k])) place = k;
    }
    Lanes<16>::Float lanes[4], best;
    for (int k = 0; k < 4; ++k) lanes[k] = Lanes<16>::Float{} + window[k];
    Lanes<16>::Int winner;
    find_maximum<16>(lanes, best, winner);
    EXPECT_EQ(winner[i % 16], place) << i;
    EXPECT_TRUE(best[i % 16] == window[place] || std::isnan(window[place])) << i;
    EXPECT_EQ(std::isnan(best[i % 16]), std::isnan(window[place])) << i;
  }
}

}  // namespace
}  // namespace cputrain::cpu::max_pool_test
