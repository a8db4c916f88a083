#include "datasets/pixels/rand_augment.h"

#include <gtest/gtest.h>

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
      ASSERT_NEAR(bytes[i], expected[i], kind == "sharpness" ? 1 : 0) << kind << " " << i;
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
  EXPECT_EQ(after({RandKind::translate_y, -0.5}, "abcdefgh", {4, 2, 3}), "efghghgh");
  EXPECT_EQ(after({RandKind::shear_x, 1}, "abcdefghi", {3, 3, 3}), "aabdefhii");
  EXPECT_EQ(after({RandKind::shear_y, 1}, "abcdefghi", {3, 3, 3}), "abfaeidhi");
  EXPECT_EQ(after({RandKind::rotate, 90}, "abcdefghi", {3, 3, 3}).size(), 9u);
  EXPECT_EQ(after({RandKind::identity, 0}, "abcd", {2, 2, 3}), "abcd");
}

TEST(RandSteps, AreTheOtherChangesOfTheSameName) {
  const Image image = golden_image(8, 8);
  const Shape shape{8, 8, 3};
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
  EXPECT_EQ(step(RandKind::rotate, 21), changed({.warp = {.rotate = 21}}));
  EXPECT_EQ(step(RandKind::translate_x, 0.25), changed({.warp = {.shift_x = -2}}));
  EXPECT_EQ(step(RandKind::brightness, 1.3), changed({.colour = {.brightness = 1.3}}));
  EXPECT_EQ(step(RandKind::contrast, 0.7), changed({.colour = {.contrast = 0.7}}));
  EXPECT_EQ(step(RandKind::saturation, 1.9), changed({.colour = {.saturation = 1.9}}));
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
  std::set<int> tops, lefts;
  for (std::uint32_t sample = 0; sample < 500; ++sample) {
    const Window cut = choose_change(augment, kWhole, 7, 0, sample).cutout;
    tops.insert(cut.bottom - 2);  // its middle, where no edge cuts it off
    lefts.insert(cut.right - 2);
    EXPECT_EQ(cut.top, std::max(0, cut.top));
    EXPECT_TRUE(cut.bottom - cut.top == 4 || cut.top == 0 || cut.bottom == kWhole.height);
    Bytes white(kWhole.size(), 255), dst(kWhole.size());
    change_image(white.data(), kWhole, data::Turn::none, {.cutout = cut}, dst);
    for (int i = 0; i < kWhole.height * kWhole.width; ++i) {
      const int y = i / kWhole.width, x = i % kWhole.width;
      const bool inside = y >= cut.top && y < cut.bottom && x >= cut.left && x < cut.right;
      ASSERT_EQ(dst[static_cast<std::size_t>(i) * 3], inside ? 0 : 255);
    }
  }
  EXPECT_EQ(tops.size(), 9u);  // of the ten the lowest two look alike
  EXPECT_EQ(lefts.size(), 11u);
}

}  // namespace
}  // namespace cputrain::datasets
