#include "core/random/random.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

// The known answers that come with Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, GivesTheKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  const auto block = [](RandomWords w) { return Block{w.x, w.y, w.z, w.w}; };
  EXPECT_EQ(block(philox({0, 0, 0, 0}, 0)),
            (Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr std::uint32_t f = 0xffffffffu;
  EXPECT_EQ(block(philox({f, f, f, f}, ~std::uint64_t{0})),
            (Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      block(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822u)),
      (Block{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(RandomStream, DiffersInEveryCoordinate) {
  const auto word = RandomStream(1, Purpose::order, 2, 3).at(4);
  EXPECT_EQ(word, RandomStream(1, Purpose::order, 2, 3).at(4));
  EXPECT_NE(word, RandomStream(2, Purpose::order, 2, 3).at(4));
  EXPECT_NE(word, RandomStream(1, Purpose::augment, 2, 3).at(4));
  EXPECT_NE(word, RandomStream(1, Purpose::order, 1, 3).at(4));
  EXPECT_NE(word, RandomStream(1, Purpose::order, 2, 2).at(4));
  EXPECT_NE(word, RandomStream(1, Purpose::order, 2, 3).at(5));
}

TEST(RandomWords, BecomeNumbersInRange) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(0xffffffffu), 1.0f);
  EXPECT_EQ(below(0, 7), 0u);
  EXPECT_EQ(below(0xffffffffu, 7), 6u);
}

TEST(DropoutMask, KeepsAboutItsShareAndHangsOnEveryCoordinate) {
  const auto kept = [](DropoutMask mask) {
    int count = 0;
    for (std::uint32_t group = 0; group < 2500; ++group) {
      for (const bool keep : mask.keeps(group)) count += keep;
    }
    return count;
  };
  // 10,000 draws with probability 3/4: a standard deviation of 43.
  EXPECT_NEAR(kept({0.25f, 1, 2, 3, 4}), 7500, 5 * 43);
  const auto mask = [](std::uint64_t seed, std::uint64_t step, std::uint32_t layer,
                       std::uint32_t sample) {
    std::vector<bool> bits;
    const DropoutMask m(0.5f, seed, step, layer, sample);
    for (std::uint32_t group = 0; group < 16; ++group) {
      for (const bool keep : m.keeps(group)) bits.push_back(keep);
    }
    return bits;
  };
  EXPECT_EQ(mask(1, 2, 3, 4), mask(1, 2, 3, 4));
  EXPECT_NE(mask(1, 2, 3, 4), mask(2, 2, 3, 4));
  EXPECT_NE(mask(1, 2, 3, 4), mask(1, 3, 3, 4));
  EXPECT_NE(mask(1, 2, 3, 4), mask(1, 2, 4, 4));
  EXPECT_NE(mask(1, 2, 3, 4), mask(1, 2, 3, 5));
}

}  // namespace
}  // namespace cputrain
