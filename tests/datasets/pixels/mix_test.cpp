#include "datasets/pixels/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace cputrain::datasets {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Shape kImage{6, 8, 3};

Bytes image_of(int first, int step) {
  Bytes bytes(kImage.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(first + step * static_cast<int>(i));
  }
  return bytes;
}

const Bytes kOwn = image_of(3, 5), kPartner = image_of(250, 11);

Bytes mixed(const Mix& mix) {
  Bytes dst(kOwn.size());
  mix_images(kOwn.data(), kPartner.data(), kImage, mix, dst);
  return dst;
}

TEST(Mix, BlendsEveryByteToTheNearestWholeNumber) {
  for (const std::uint32_t share : {0u, 1u, 1000u, 2048u, 4095u}) {
    const Bytes dst = mixed({.blend = share});
    const double own = share / 4096.0;
    for (std::size_t i = 0; i < dst.size(); ++i) {
      EXPECT_NEAR(dst[i], own * kOwn[i] + (1 - own) * kPartner[i], 0.5) << share << " " << i;
    }
    EXPECT_DOUBLE_EQ((Mix{.blend = share}.partner_share(kImage)), 1 - own);
  }
}

TEST(Mix, TakesABoxOfThePartner) {
  const Mix mix{.box = {1, 4, 2, 8}};
  const Bytes dst = mixed(mix);
  for (int y = 0; y < kImage.height; ++y) {
    for (int x = 0; x < kImage.width; ++x) {
      const bool inside = y >= 1 && y < 4 && x >= 2 && x < 8;
      for (int c = 0; c < 3; ++c) {
        const auto i = static_cast<std::size_t>((y * kImage.width + x) * 3 + c);
        EXPECT_EQ(dst[i], inside ? kPartner[i] : kOwn[i]) << y << " " << x;
      }
    }
  }
  EXPECT_DOUBLE_EQ(mix.partner_share(kImage), 18.0 / 48);
  EXPECT_FALSE(Mix{}.mixes());
}

/// A box with sides in the ratio of the root of its share covers no more than that, and where no
/// edge cuts it off, as much to a pixel.
TEST(Mix, BoxesLieInTheImage) {
  constexpr Shape kLarge{64, 48, 3};
  int uncut = 0;
  double own = 0, apart = 0;
  constexpr int kDraws = 2000;
  for (std::uint32_t sample = 0; sample < kDraws; ++sample) {
    const Mix mix = choose_mix({.cutmix = 1}, kLarge, 5, 2, sample);
    EXPECT_EQ(mix.blend, Mix::kOne);
    EXPECT_TRUE(mix.box.top >= 0 && mix.box.bottom <= 64 && mix.box.left >= 0 &&
                mix.box.right <= 48);
    own += 1 - mix.partner_share(kLarge);
    const bool inside =
        mix.box.top > 0 && mix.box.bottom < 64 && mix.box.left > 0 && mix.box.right < 48;
    if (!inside || !mix.mixes()) continue;
    ++uncut;
    apart +=
        (mix.box.top + mix.box.bottom - 64) * (mix.box.left + mix.box.right - 48) / (64.0 * 48);
    EXPECT_NEAR((mix.box.bottom - mix.box.top) / 64.0, (mix.box.right - mix.box.left) / 48.0,
                1 / 48.0);
  }
  EXPECT_GT(uncut, 100);
  EXPECT_NEAR(apart / uncut, 0, 0.02);  // rows and columns: products of independent numbers
  // With r = sqrt(1 - u): a side of length r about a uniform place keeps r - r * r / 4 of itself on
  // average, so boxes cover E[(r - r^2 / 4)^2] = 1/2 - 1/5 + 1/48 of images: u is uniform.
  EXPECT_NEAR(own / kDraws, 1 - (1.0 / 2 - 1.0 / 5 + 1.0 / 48), 0.02);
}

TEST(Mix, IsAFunctionOfSeedEpochAndSample) {
  const auto blend = [](std::uint64_t seed, int epoch, std::uint32_t sample) {
    return choose_mix({.mixup = 0.8}, kImage, seed, epoch, sample).blend;
  };
  EXPECT_EQ(blend(1, 2, 3), blend(1, 2, 3));
  EXPECT_NE(blend(1, 2, 3), blend(2, 2, 3));
  EXPECT_NE(blend(1, 2, 3), blend(1, 3, 3));
  EXPECT_NE(blend(1, 2, 3), blend(1, 2, 4));
  EXPECT_FALSE(choose_mix({.flip = true}, kImage, 1, 2, 3).mixes());
}

/// By the first word of the image's stream: boxes for its upper half.
TEST(Mix, BothAreMadeHalfTheTime) {
  int boxes = 0;
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const bool cuts = RandomStream(1, Purpose::mixing, 2, sample).at(0)[0] >= 0x80000000;
    const Mix mix = choose_mix({.mixup = 0.8, .cutmix = 1}, kImage, 1, 2, sample);
    const Mix alone =
        choose_mix({.mixup = cuts ? 0 : 0.8, .cutmix = cuts ? 1.0 : 0}, kImage, 1, 2, sample);
    EXPECT_EQ(mix.blend, alone.blend);
    EXPECT_EQ(mix.box, alone.box);
    boxes += cuts;
  }
  EXPECT_NEAR(boxes, 500, 60);
}

TEST(Mix, EachImageIsOneOthersPartner) {
  for (const std::size_t n : {2u, 3u, 17u, 100u}) {
    std::set<std::size_t> partners, turns;
    for (std::size_t place = 0; place < n; ++place) {
      const std::size_t partner = partner_place(place, n, 4, 1);
      EXPECT_NE(partner, place);
      partners.insert(partner);
    }
    EXPECT_EQ(partners.size(), n);
    for (int epoch = 0; epoch < 20; ++epoch) turns.insert(partner_place(0, n, 4, epoch));
    EXPECT_EQ(turns.size() > 1, n > 2);
  }
  EXPECT_EQ(partner_place(0, 1, 4, 1), 0u);
}

}  // namespace
}  // namespace cputrain::datasets
