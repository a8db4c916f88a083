#include "datasets/pixels/rand_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "datasets/pixels/change.h"
#include "datasets/pixels/tones.h"
#include "tests/datasets/pixels/golden_images.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Shape kToned{9, 40, 3};  // of make_images.py

TEST(Tones, AreThoseOfPillow) {
  const std::map<std::string, std::function<void(Bytes&, double)>> changes{
      {"solarize", [](Bytes& b, double amount) { solarize(b, static_cast<int>(amount)); }},
      {"posterize", [](Bytes& b, double amount) { posterize(b, static_cast<int>(amount)); }},
      {"stretch", [](Bytes& b, double) { stretch_contrast(b); }},
      {"equalize", [](Bytes& b, double) { equalize(b); }},
      {"sharpness", [](Bytes& b, double amount) { sharpen(b, kToned, amount); }}};
  int cases = 0;
  for (const auto& one : golden_images().at("tones")) {
    const std::string kind = one.at("kind");
    Bytes bytes = one.at("before").get<Bytes>();
    const Bytes before = bytes, expected = one.at("pixels").get<Bytes>();
    changes.at(kind)(bytes, one.at("amount"));
    EXPECT_NE(bytes, before) << kind;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      // Pillow's blend cuts what it computes in float, here it is rounded.
      const int more = bytes[i] - expected[i];
      ASSERT_TRUE(more == 0 || (more == 1 && kind == "sharpness")) << kind << " " << i;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 8);
}

TEST(Tones, OfOneColourStay) {
  Bytes grey(30, 77);
  stretch_contrast(grey);
  equalize(grey);
  sharpen(grey, {2, 5, 3}, 0);
  EXPECT_EQ(grey, Bytes(30, 77));
}

/// To 0 and 255, what lies between cut off.
TEST(Tones, StretchEachChannelByItself) {
  Bytes bytes{10, 5, 7, 20, 5, 8, 30, 9, 9};
  stretch_contrast(bytes);
  EXPECT_EQ(bytes, (Bytes{0, 0, 0, 127, 0, 127, 255, 255, 255}));
}

/// An image in letters, each pixel three times the same byte.
std::string after(RandStep step, const std::string& letters, Shape image) {
  Bytes bytes;
  for (const char letter : letters) bytes.insert(bytes.end(), 3, static_cast<std::uint8_t>(letter));
  apply(RandSteps{step}, image, bytes);
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) result += static_cast<char>(bytes[i]);
  return result;
}

TEST(RandSteps, MovePixelsAsOnPaper) {
  EXPECT_EQ(after({RandKind::translate_x, 0.25}, "abcdefgh", {2, 4, 3}), "aabceefg");
  EXPECT_EQ(after({RandKind::translate_x, -0.45}, "abcdefgh", {2, 4, 3}), "bcddfghh");  // 1.8
  EXPECT_EQ(after({RandKind::translate_y, -0.5}, "abcdefgh", {4, 2, 3}), "efghghgh");
  EXPECT_EQ(after({RandKind::translate_y, 0.45}, "abcdefgh", {4, 2, 3}), "ababcdef");
  EXPECT_EQ(after({RandKind::shear_x, 2}, "abcdefghijklmno", {3, 5, 3}), "bcdeeijjjjooooo");
  EXPECT_EQ(after({RandKind::shear_y, 2}, "abcdefghijklmno", {5, 3, 3}), "dkognojnomnomno");
  EXPECT_EQ(after({RandKind::rotate, 90}, "abcdefghi", {3, 3, 3}), "gdahebifc");
  EXPECT_EQ(after({RandKind::identity, 0}, "abcd", {2, 2, 3}), "abcd");
}

/// Torchvision's affine(shear, center=[0, 0]) takes the place (x, y), from the corner, from
/// (x + amount * y, y) or (x, y + amount * x).
TEST(RandSteps, ShearAboutTheCorner) {
  constexpr Shape kShape{4, 7, 3};
  const Image image = golden_image(kShape.height, kShape.width);
  const auto between = [](double place, int side, const auto& value) {
    const double inside = std::clamp(place - 0.5, 0.0, side - 1.0), whole = std::floor(inside);
    const int first = static_cast<int>(whole), last = std::min(first + 1, side - 1);
    return value(first) + (inside - whole) * (value(last) - value(first));
  };
  for (const double amount : {0.3, 0.15, -0.21}) {
    Bytes across = image.rgb, down = image.rgb;
    apply(RandSteps{RandStep{RandKind::shear_x, amount}}, kShape, across);
    apply(RandSteps{RandStep{RandKind::shear_y, amount}}, kShape, down);
    for (int i = 0; i < static_cast<int>(image.rgb.size()); ++i) {
      const int y = i / 21, x = i / 3 % 7;
      const auto at = [&](int row, int column) {
        return static_cast<double>(
            image.rgb[static_cast<std::size_t>(row * 21 + column * 3 + i % 3)]);
      };
      const double sheared =
          between(x + 0.5 + amount * (y + 0.5), 7, [&](int k) { return at(y, k); });
      EXPECT_NEAR(across[static_cast<std::size_t>(i)], sheared, 0.5 + 0.035) << amount << " " << i;
      const double lower =
          between(y + 0.5 + amount * (x + 0.5), 4, [&](int k) { return at(k, x); });
      EXPECT_NEAR(down[static_cast<std::size_t>(i)], lower, 0.5 + 0.035) << amount << " " << i;
    }
  }
}

TEST(RandSteps, AreTheOtherChangesOfTheSameName) {
  const Shape shape{6, 9, 3};
  const Image image = golden_image(shape.height, shape.width);
  const auto changed = [&](const Change& change) {
    Bytes dst(image.rgb.size());
    change_image(image.rgb.data(), shape, data::Turn::none, change, dst);
    return dst;
  };
  const auto step = [&](RandKind kind, double amount) {
    Change change;
    change.rand[0] = {kind, amount};
    return changed(change);
  };
  const auto toned = [&](const auto& change, auto... words) {
    Bytes bytes = image.rgb;
    change(bytes, words...);
    return bytes;
  };
  EXPECT_EQ(step(RandKind::rotate, 21), changed({.warp = {.rotate = 21}}));
  EXPECT_EQ(step(RandKind::translate_x, 0.25), changed({.warp = {.shift_x = -2}}));
  EXPECT_EQ(step(RandKind::translate_y, 0.5), changed({.warp = {.shift_y = -3}}));
  EXPECT_EQ(step(RandKind::brightness, 1.3), changed({.colour = {.brightness = 1.3}}));
  EXPECT_EQ(step(RandKind::contrast, 0.7), changed({.colour = {.contrast = 0.7}}));
  EXPECT_EQ(step(RandKind::saturation, 1.9), changed({.colour = {.saturation = 1.9}}));
  EXPECT_EQ(step(RandKind::sharpness, 1.6), toned(sharpen, shape, 1.6));
  EXPECT_EQ(step(RandKind::posterize, 5), toned(posterize, 5));
  EXPECT_EQ(step(RandKind::solarize, 90), toned(solarize, 90));
  EXPECT_EQ(step(RandKind::stretch, 0), toned(stretch_contrast));
  EXPECT_EQ(step(RandKind::equalize, 0), toned(equalize));
}

/// The ranges of torchvision's RandAugment at the same part of its largest magnitude.
TEST(RandSteps, AreOfAllKindsWithTheAmountsOfTheMagnitude) {
  std::map<RandKind, std::set<double>> amounts;
  for (std::uint32_t sample = 0; sample < 600; ++sample) {
    const RandomStream stream(3, Purpose::augment, 1, sample);
    const RandSteps steps = choose_rand_steps(2, 5, stream);
    for (int i = 0; i < 2; ++i) {
      const RandStep& step = steps[static_cast<std::size_t>(i)];
      amounts[step.kind].insert(std::round(step.amount * 1e6) / 1e6);
      const auto words = stream.at(16u + static_cast<std::uint32_t>(i));
      EXPECT_EQ(step.kind, static_cast<RandKind>(words[0] * std::uint64_t{14} >> 32));
      const bool has_sides = step.kind >= RandKind::shear_x && step.kind <= RandKind::rotate;
      EXPECT_EQ(step.amount < 0, has_sides && words[1] < 0x80000000);
    }
    EXPECT_EQ(steps[2], RandStep{});
  }
  const std::set<double> shear{-0.15, 0.15}, move{-0.226586, 0.226586}, factor{0.55, 1.45};
  EXPECT_EQ(amounts, (std::map<RandKind, std::set<double>>{{RandKind::identity, {0}},
                                                           {RandKind::shear_x, shear},
                                                           {RandKind::shear_y, shear},
                                                           {RandKind::translate_x, move},
                                                           {RandKind::translate_y, move},
                                                           {RandKind::rotate, {-15, 15}},
                                                           {RandKind::brightness, factor},
                                                           {RandKind::saturation, factor},
                                                           {RandKind::contrast, factor},
                                                           {RandKind::sharpness, factor},
                                                           {RandKind::posterize, {6}},
                                                           {RandKind::solarize, {128}},
                                                           {RandKind::stretch, {0}},
                                                           {RandKind::equalize, {0}}}));
}

TEST(Cutout, IsASquareAboutAnyPixelCutOffAtTheEdges) {
  constexpr Shape kWhole{10, 12, 3};
  const data::Augment augment = data::parse_augment("cutout:4");
  std::set<std::pair<int, int>> middles;
  for (std::uint32_t sample = 0; sample < 2000; ++sample) {
    const Window cut = choose_change(augment, kWhole, 7, 0, sample).cutout;
    const int row = cut.top > 0 ? cut.top + 2 : cut.bottom - 2;
    const int column = cut.left > 0 ? cut.left + 2 : cut.right - 2;
    ASSERT_EQ(cut, (Window{std::max(0, row - 2), std::min(10, row + 2), std::max(0, column - 2),
                           std::min(12, column + 2)}));
    if (!middles.emplace(row, column).second) continue;
    Bytes white(kWhole.size(), 255), dst(kWhole.size());
    change_image(white.data(), kWhole, data::Turn::none, {.cutout = cut}, dst);
    for (int i = 0; i < kWhole.height * kWhole.width; ++i) {
      const int y = i / kWhole.width, x = i % kWhole.width;
      const bool inside = y >= cut.top && y < cut.bottom && x >= cut.left && x < cut.right;
      ASSERT_EQ(dst[static_cast<std::size_t>(i) * 3], inside ? 0 : 255);
    }
  }
  EXPECT_EQ(middles.size(), 120u);  // rows and columns are drawn apart
}

}  // namespace
}  // namespace cputrain::datasets
