#include "datasets/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace cputrain {
namespace {

/// A picture in letters, each pixel three times the same byte.
std::string turned(const std::string& letters, int height, int width, Turn turn) {
  std::vector<std::uint8_t> src, dst(letters.size() * 3);
  for (const char letter : letters) src.insert(src.end(), 3, static_cast<std::uint8_t>(letter));
  turn_picture(src.data(), {height, width, 3}, turn, dst);
  std::string result;
  for (std::size_t i = 0; i < dst.size(); i += 3) result += static_cast<char>(dst[i]);
  return result;
}

// abc
// def     turned by hand, anticlockwise
// ghi
TEST(Turn, moves_pixels_as_on_paper) {
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::none), "abcdefghi");
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::flip_vertical), "ghidefabc");
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::flip_horizontal), "cbafedihg");
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::by_90), "cfibehadg");
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::by_180), "ihgfedcba");
  EXPECT_EQ(turned("abcdefghi", 3, 3, Turn::by_270), "gdahebifc");
  EXPECT_EQ(turned("abcdef", 2, 3, Turn::flip_vertical), "defabc");
  EXPECT_EQ(turned("abcdef", 2, 3, Turn::flip_horizontal), "cbafed");
  EXPECT_EQ(turned("abcdef", 2, 3, Turn::by_180), "fedcba");
}

TEST(Turn, keeps_channels_together) {
  const std::vector<std::uint8_t> src = {1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> dst(6);
  turn_picture(src.data(), {1, 2, 3}, Turn::flip_horizontal, dst);
  EXPECT_EQ(dst, (std::vector<std::uint8_t>{4, 5, 6, 1, 2, 3}));
}

/// 6000 draws: each of n is expected 6000 / n times, six standard deviations are below 240.
TEST(ChooseTurn, all_are_equally_likely) {
  for (const Augment augment : {Augment::flip, Augment::six}) {
    const int kinds = augment == Augment::flip ? 2 : 6;
    std::map<Turn, int> count;
    for (int epoch = 0; epoch < 6; ++epoch) {
      for (std::uint32_t sample = 0; sample < 1000; ++sample) {
        const Turn turn = choose_turn(augment, 3, epoch, sample);
        EXPECT_EQ(turn, choose_turn(augment, 3, epoch, sample));
        ++count[turn];
      }
    }
    EXPECT_EQ(count.size(), static_cast<std::size_t>(kinds));
    for (const auto& [turn, times] : count) EXPECT_NEAR(times, 6000.0 / kinds, 240);
  }
  EXPECT_EQ(choose_turn(Augment::none, 3, 1, 1), Turn::none);
}

}  // namespace
}  // namespace cputrain
