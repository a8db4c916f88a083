#include "datasets/pixels/change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/random/random.h"
#include "datasets/pixels/resize.h"
#include "tests/datasets/pixels/golden_images.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes changed(const Bytes& src, Shape size, data::Turn turn, const Change& change) {
  Bytes dst(src.size());
  change_image(src.data(), size, turn, change, dst);
  return dst;
}

/// An image in letters, each pixel three times the same byte.
std::string in_letters(const std::string& letters, int height, int width, data::Turn turn,
                       const Change& change = {}) {
  Bytes src;
  for (const char letter : letters) src.insert(src.end(), 3, static_cast<std::uint8_t>(letter));
  const Bytes dst = changed(src, {height, width, 3}, turn, change);
  std::string result;
  for (std::size_t i = 0; i < dst.size(); i += 3) result += static_cast<char>(dst[i]);
  return result;
}

// abc
// def     turned by hand, anticlockwise
// ghi
TEST(Turn, MovesPixelsAsOnPaper) {
  const std::map<data::Turn, std::string> turned{
      {data::Turn::none, "abcdefghi"},   {data::Turn::flip_vertical, "ghidefabc"},
      {data::Turn::by_90, "cfibehadg"},  {data::Turn::flip_horizontal, "cbafedihg"},
      {data::Turn::by_180, "ihgfedcba"}, {data::Turn::by_270, "gdahebifc"}};
  for (const auto& [turn, letters] : turned) {
    EXPECT_EQ(in_letters("abcdefghi", 3, 3, turn), letters) << "as the sample is";
    EXPECT_EQ(in_letters("abcdefghi", 3, 3, data::Turn::none, {.turn = turn}), letters)
        << "of `six`";
  }
  EXPECT_EQ(in_letters("abcdef", 2, 3, data::Turn::flip_vertical), "defabc");
  EXPECT_EQ(in_letters("abcdef", 2, 3, data::Turn::flip_horizontal), "cbafed");
  EXPECT_EQ(in_letters("abcdef", 2, 3, data::Turn::by_180), "fedcba");
}

TEST(Turn, ASampleIsTurnedBeforeItIsChanged) {
  // by_90 gives cfi beh adg; then left and right are swapped.
  EXPECT_EQ(in_letters("abcdefghi", 3, 3, data::Turn::by_90, {.flip = true}), "ifchebgda");
  EXPECT_EQ(in_letters("abcdefghi", 3, 3, data::Turn::by_90, {.vflip = true}), "adgbehcfi");
  EXPECT_EQ(in_letters("abcdefghi", 3, 3, data::Turn::by_90, {.turn = data::Turn::by_90}),
            "ihgfedcba");
  EXPECT_EQ(in_letters("abcdefghi", 3, 3, data::Turn::by_90, {.turn = data::Turn::by_270}),
            "abcdefghi");
}

TEST(Turn, KeepsChannelsTogether) {
  EXPECT_EQ(changed({1, 2, 3, 4, 5, 6}, {1, 2, 3}, data::Turn::flip_horizontal, {}),
            (Bytes{4, 5, 6, 1, 2, 3}));
}

TEST(MirrorImage, SwapsLeftAndRightAndNothingElse) {
  const Bytes image{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  Bytes mirrored(image.size());
  mirror_image(image, {2, 3, 3}, mirrored);
  EXPECT_EQ(mirrored, (Bytes{7, 8, 9, 4, 5, 6, 1, 2, 3, 17, 18, 19, 14, 15, 16, 11, 12, 13}));
}

TEST(Crop, ShowsBlackWhereThePaddingIs) {
  const auto crop = [](int rows, int columns, data::Turn turn = data::Turn::none) {
    std::string letters =
        in_letters("abcdef", 2, 3, turn, {.crop_rows = rows, .crop_columns = columns});
    for (char& letter : letters) letter = letter == 0 ? '.' : letter;
    return letters;
  };
  EXPECT_EQ(crop(0, 0), "abcdef");
  EXPECT_EQ(crop(1, 0), "def...");
  EXPECT_EQ(crop(-1, 1), "...bc.");
  EXPECT_EQ(crop(0, -2), "..a..d");
  EXPECT_EQ(crop(2, 0), "......");
  EXPECT_EQ(crop(0, 1, data::Turn::flip_horizontal), "ba.ed.");
}

TEST(Warp, NothingAskedChangesNothing) {
  const Image image = golden_image(9, 7);
  const Shape size{9, 7, 3};
  EXPECT_EQ(warp_map({}, size), PixelMap{});
  EXPECT_EQ(changed(image.rgb, size, data::Turn::none, {}), image.rgb);
  // So little that no byte can change, but the pixels are computed.
  EXPECT_EQ(changed(image.rgb, size, data::Turn::none, {.warp = {.rotate = 1e-5}}), image.rgb);
}

/// As many degrees as a turn has are that turn, whatever way they are made.
TEST(Warp, ARotationByRightAnglesIsATurn) {
  const Image image = golden_image(8, 8);
  const Shape size{8, 8, 3};
  // Rows and columns of the source, so the image turns the other way.
  EXPECT_EQ(changed(image.rgb, size, data::Turn::none, {.warp = {.rotate = -90}}),
            changed(image.rgb, size, data::Turn::by_90, {}));
  EXPECT_EQ(changed(image.rgb, size, data::Turn::none, {.warp = {.rotate = 180}}),
            changed(image.rgb, size, data::Turn::by_180, {}));
}

TEST(Warp, AgreesWithKerasThroughScipy) {
  for (const auto& one : golden_images().at("warps")) {
    const int height = one.at("height"), width = one.at("width");
    const std::vector<double> warp = one.at("warp");  // theta, shear, tx, ty, zx, zy
    const Change change{.warp = {warp[0], warp[1], warp[2], warp[3], warp[4], warp[5]}};
    const Bytes bytes =
        changed(golden_image(height, width).rgb, {height, width, 3}, data::Turn::none, change);
    const std::vector<double> expected = one.at("pixels");
    ASSERT_EQ(bytes.size(), expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      // Half a level of rounding, and 1/8192 of a pixel along each axis.
      EXPECT_NEAR(bytes[i], expected[i], 0.5 + 0.07) << one.at("warp") << " " << i;
    }
  }
}

/// Flips and turns after a warp are those of the warped image, to the byte.
TEST(Warp, TurnsOfAWarpedImageAreExact) {
  const Shape size{9, 9, 3};
  const Bytes src = golden_image(9, 9).rgb;
  Change change{.warp = {.rotate = 20, .shear = 5, .shift_y = 0.7, .shift_x = -1.1, .zoom_y = 0.9}};
  const Bytes warped = changed(src, size, data::Turn::none, change);
  change.flip = true;
  EXPECT_EQ(changed(src, size, data::Turn::none, change),
            changed(warped, size, data::Turn::flip_horizontal, {}));
  change.flip = false, change.turn = data::Turn::by_270;
  EXPECT_EQ(changed(src, size, data::Turn::none, change),
            changed(warped, size, data::Turn::by_270, {}));
  change.turn = data::Turn::none;
  const Bytes turned = changed(src, size, data::Turn::by_90, {});
  EXPECT_EQ(changed(src, size, data::Turn::by_90, change),
            changed(turned, size, data::Turn::none, change));
}

/// Pillow cuts off where this rounds, hence one level; grey images have whole numbers.
TEST(Colour, AgreesWithPillow) {
  for (const auto& one : golden_images().at("colours")) {
    const std::string kind = one.at("kind");
    const double factor = one.at("factor");
    ColourChange change;
    (kind == "Brightness" ? change.brightness
     : kind == "Contrast" ? change.contrast
                          : change.saturation) = factor;
    Bytes bytes = golden_image(5, 6).rgb;
    change_colour(bytes, change);
    const std::vector<int> expected = one.at("pixels");
    ASSERT_EQ(bytes.size(), expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const int more = bytes[i] - expected[i];
      EXPECT_TRUE(more == 0 || (more == 1 && factor > 0)) << kind << " " << factor << " " << i;
    }
  }
}

TEST(Colour, FactorsOfOneChangeNothing) {
  Bytes bytes = golden_image(5, 6).rgb;
  change_colour(bytes, {});
  EXPECT_EQ(bytes, golden_image(5, 6).rgb);
}

/// 6000 draws: each of n is expected 6000 / n times, six standard deviations are below 240.
TEST(ChooseChange, AllTurnsAreEquallyLikely) {
  const Shape size{32, 32, 3};
  for (const data::Augment& augment :
       {data::Augment{.flip = true}, data::Augment{.vflip = true}, data::Augment{.six = true}}) {
    std::map<int, int> count;
    for (int epoch = 0; epoch < 6; ++epoch) {
      for (std::uint32_t sample = 0; sample < 1000; ++sample) {
        const Change change = choose_change(augment, size, 3, epoch, sample);
        EXPECT_EQ(change, choose_change(augment, size, 3, epoch, sample));
        EXPECT_EQ(change.warp, Warp{});
        ++count[(change.flip ? 100 : 0) + (change.vflip ? 200 : 0) + static_cast<int>(change.turn)];
      }
    }
    const std::size_t kinds = augment.six ? 6 : 2;
    EXPECT_EQ(count.size(), kinds);
    for (const auto& [kind, times] : count) {
      EXPECT_NEAR(times, 6000.0 / static_cast<double>(kinds), 240);
    }
  }
  EXPECT_EQ(choose_change({}, size, 3, 1, 1), Change{});
}

/// Uniform in the ranges that the flags name: extremes are nearly reached, the mean is the middle,
/// and what one is says nothing of another.
TEST(ChooseChange, StrengthsAreUniformInTheirRanges) {
  const data::Augment augment =
      data::parse_augment("rotate:30,shift:0.25,shear:10,zoom:0.2,crop:3,colour:0.4");
  const Shape size{40, 80, 3};
  struct Range {
    double low, high;
    double (*of)(const Change&);
  };
  const std::vector<Range> ranges{
      {-30, 30, [](const Change& c) { return c.warp.rotate; }},
      {-10, 10, [](const Change& c) { return c.warp.shear; }},
      {-10, 10, [](const Change& c) { return c.warp.shift_y; }},
      {-20, 20, [](const Change& c) { return c.warp.shift_x; }},
      {0.8, 1.2, [](const Change& c) { return c.warp.zoom_y; }},
      {0.8, 1.2, [](const Change& c) { return c.warp.zoom_x; }},
      {-3, 3, [](const Change& c) { return static_cast<double>(c.crop_rows); }},
      {-3, 3, [](const Change& c) { return static_cast<double>(c.crop_columns); }},
      {0.6, 1.4, [](const Change& c) { return c.colour.brightness; }},
      {0.6, 1.4, [](const Change& c) { return c.colour.contrast; }},
      {0.6, 1.4, [](const Change& c) { return c.colour.saturation; }}};
  constexpr int kDraws = 4000;
  std::vector<std::vector<double>> units(ranges.size());  // from -1 to 1
  for (std::uint32_t sample = 0; sample < kDraws; ++sample) {
    const Change change = choose_change(augment, size, 11, 2, sample);
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      const auto& [low, high, of] = ranges[r];
      units[r].push_back((2 * of(change) - low - high) / (high - low));
    }
  }
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const auto [least, most] = std::ranges::minmax(units[r]);
    EXPECT_TRUE(least >= -1 && least < -0.98 && most <= 1 && most > 0.98) << r;
    // No two are drawn from one word: products of independent numbers vanish on average, as each
    // alone does. Standard deviations are 1 / sqrt(3 * 4000), for crops a little more, and less.
    EXPECT_NEAR(std::accumulate(units[r].begin(), units[r].end(), 0.0) / kDraws, 0, 0.063) << r;
    for (std::size_t q = 0; q < r; ++q) {
      const double sum =
          std::inner_product(units[r].begin(), units[r].end(), units[q].begin(), 0.0);
      EXPECT_NEAR(sum / kDraws, 0, 0.042) << q << " " << r;
    }
  }
}

/// A kind of its own goes before `colour`, by the same numbers.
TEST(ChooseChange, OneColourInPlaceOfAll) {
  const Shape size{32, 32, 3};
  const auto colour = [&](const char* text) {
    return choose_change(data::parse_augment(text), size, 5, 6, 7).colour;
  };
  const ColourChange all = colour("colour:0.2"), one = colour("colour:0.2,contrast:0.4");
  EXPECT_EQ(one.brightness, all.brightness);
  EXPECT_NEAR(one.contrast - 1, 2 * (all.contrast - 1), 1e-12);
  EXPECT_EQ(colour("brightness:0.2"), (ColourChange{.brightness = all.brightness}));
}

/// Switching one kind on leaves what the others draw.
TEST(ChooseChange, KindsAreIndependent) {
  const Shape size{32, 32, 3};
  const Change all = choose_change(
      data::parse_augment(
          "flip,vflip,six,rotate:9,shift:0.1,shear:3,zoom:0.1,crop:2,colour:0.3,crop"),
      size, 5, 6, 7);
  EXPECT_EQ(choose_change(data::parse_augment("zoom:0.1"), size, 5, 6, 7).warp.zoom_x,
            all.warp.zoom_x);
  EXPECT_EQ(choose_change(data::parse_augment("crop:2"), size, 5, 6, 7).crop_rows, all.crop_rows);
  EXPECT_EQ(choose_change(data::parse_augment("six"), size, 5, 6, 7).turn, all.turn);
  EXPECT_EQ(choose_change(data::parse_augment("colour:0.3"), size, 5, 6, 7).colour, all.colour);
  EXPECT_EQ(choose_change(data::parse_augment("crop"), size, 5, 6, 7).part, all.part);
}

TEST(RandomCrop, AreasAndRatiosAreThoseOfTheirRanges) {
  const data::Augment augment = data::parse_augment("crop-area:0.25-0.5,crop-ratio:0.5-2");
  const KeptImages images({64, 64, 3}, 2);
  const double all = 128.0 * 128;
  double areas = 0, wide = 0, apart = 0;
  constexpr int kSamples = 4000;
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    const Change change = choose_change(augment, images, 3, 1, sample);
    const Window& part = change.part.value();
    EXPECT_TRUE(part.top >= 0 && part.left >= 0 && part.bottom <= 128 && part.right <= 128);
    const double width = part.right - part.left, height = part.bottom - part.top;
    EXPECT_NEAR(width * height / all, 0.375, 0.125 + 0.01);
    EXPECT_NEAR(std::log(width / height), 0, std::log(2) + 0.03);
    areas += width * height / all;
    wide += width > height ? 1 : 0;
    if (width < 128 && height < 128) {
      apart += (2 * part.top / (128 - height) - 1) * (2 * part.left / (128 - width) - 1);
    }
    EXPECT_EQ(change, choose_change(augment, images, 3, 1, sample));
  }
  EXPECT_NEAR(areas / kSamples, 0.375, 0.01);
  EXPECT_NEAR(wide / kSamples, 0.5, 0.05);
  EXPECT_NEAR(apart / kSamples, 0, 0.05);  // rows and columns: products of independent numbers
}

TEST(RandomCrop, TheFirstTryIsTakenWhereItFits) {
  const KeptImages images({64, 64, 3}, 2);
  for (std::uint32_t sample = 0; sample < 20; ++sample) {
    const auto words = RandomStream(3, Purpose::augment, 1, sample).at(1000);
    const double area = 128 * 128 * 0.25 * (1 + unit_float(words[0]));
    const int side = static_cast<int>(std::lround(std::sqrt(area)));
    const auto places = static_cast<std::uint32_t>(128 - side + 1);
    const int top = static_cast<int>(below(words[2], places));
    const int left = static_cast<int>(below(words[3], places));
    const auto augment = data::parse_augment("crop-area:0.25-0.5,crop-ratio:1-1");
    EXPECT_EQ(choose_change(augment, images, 3, 1, sample).part,
              (Window{top, top + side, left, left + side}));
  }
}

/// A tall image has no wide part of nearly all its area. Of 0.9 of it, ratios from 0.45 to 0.56
/// fit: one try in ten, where they are drawn from 0.4 to 4.2.
TEST(RandomCrop, WhatFitsNowhereInTenTriesIsTheLargestInTheCentre) {
  const KeptImages images({64, 32, 3}, 2);
  const auto part = [&](const char* text, std::uint32_t sample) {
    return choose_change(data::parse_augment(text), images, 3, 1, sample).part;
  };
  EXPECT_EQ(part("crop-area:0.9-1,crop-ratio:2-2", 5), (Window{48, 80, 0, 64}));
  EXPECT_EQ(part("crop-area:0.9-1,crop-ratio:0.1-0.1", 5), (Window{0, 128, 26, 38}));
  constexpr int kSamples = 4000;
  int whole = 0;
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    whole += part("crop-area:0.9-0.9,crop-ratio:0.4-4.2", sample) == Window{0, 128, 0, 64};
  }
  const double least = 1.8 / 4 / std::pow(1 + 0.5 / 128, 2), most = std::pow(1 + 0.5 / 64, 2) / 1.8;
  const double fits = std::log(most / least) / std::log(4.2 / 0.4);
  EXPECT_NEAR(whole / double{kSamples}, std::pow(1 - fits, 10), 0.015);
}

TEST(RandomCrop, IsThatPartOfTheImageInItsSize) {
  const Shape kept{24, 24, 3}, size{12, 12, 3};
  const Image image = golden_image(24, 24);
  const Window part{3, 20, 5, 18};
  Image cut{13, 17, {}};
  for (int y = part.top; y < part.bottom; ++y) {
    const auto row = image.rgb.begin() + (y * 24 + part.left) * 3;
    cut.rgb.insert(cut.rgb.end(), row, row + 13 * 3);
  }
  for (const data::Resize way : {data::Resize::bilinear, data::Resize::bilinear_plain}) {
    std::vector<std::uint8_t> expected(size.size()), bytes(size.size()), mirrored(size.size());
    resize_image(cut, size, way, expected);
    const KeptImages images(size, 2, way);
    ASSERT_EQ(images.kept(), kept);
    change_image(image.rgb.data(), images, data::Turn::none, {.part = part}, bytes);
    EXPECT_EQ(bytes, expected);
    // What follows is made of the part.
    change_image(image.rgb.data(), images, data::Turn::none, {.part = part, .flip = true},
                 mirrored);
    change_image(expected.data(), size, data::Turn::flip_horizontal, {}, bytes);
    EXPECT_EQ(mirrored, bytes);
  }
}

}  // namespace
}  // namespace cputrain::datasets
