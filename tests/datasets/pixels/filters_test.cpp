// Filters with antialias beside Pillow's, and how images are fitted into a square.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "datasets/pixels/convolve.h"
#include "datasets/pixels/filter_taps.h"
#include "datasets/pixels/fit.h"
#include "datasets/pixels/resize.h"
#include "tests/datasets/made_files.h"
#include "tests/datasets/pixels/golden_images.h"
#include "tests/support/test_data.h"

namespace cputrain::datasets {
namespace {

using data::Fitting;
using data::Resize;

constexpr std::array kWays{Resize::area, Resize::bilinear, Resize::bicubic, Resize::nearest,
                           Resize::bilinear_plain};

std::vector<std::uint8_t> fitted(const Image& image, Shape size, const data::Resizing& resizing) {
  std::vector<std::uint8_t> bytes(size.size(), 7);
  resize_image(image, size, resizing, bytes);
  return bytes;
}

std::string hex_of(const std::vector<std::uint8_t>& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) text.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return text;
}

/// filters.json, which make_filters.py writes with Pillow: 1xN, growing, shrinking a hundredfold.
TEST(Filters, GiveTheBytesThatPillowGives) {
  const nlohmann::json golden =
      nlohmann::json::parse(testing::test_data("datasets/pixels/filters.json"));
  ASSERT_GT(golden.size(), 100u);
  for (const auto& one : golden) {
    const data::Resizing resizing(value_named<Resize>(one.at("resize").get<std::string>()).value(),
                                  data::parse_fit(one.at("fit").get<std::string>()));
    const Image image = golden_image(one.at("height"), one.at("width"));
    const Shape size{one.at("new_height"), one.at("new_width"), 3};
    EXPECT_EQ(hex_of(fitted(image, size, resizing)), one.at("pixels").get<std::string>())
        << one.at("height") << "x" << one.at("width") << " " << to_text(resizing);
  }
}

TEST(Filters, AreTheSameBytesWithEachInstructionSet) {
  const Image image = golden_image(43, 57);
  for (const Resize way : {Resize::area, Resize::bilinear, Resize::bicubic}) {
    const ImageFit fit = fit_image(43, 57, {19, 23, 3}, {});
    const FilterTaps rows = filter_taps(fit.rows, way), columns = filter_taps(fit.columns, way);
    const auto bytes_of = [&](const ConvolveKernels& kernels) {
      std::vector<std::uint8_t> bytes(std::size_t{19} * 23 * 3);
      convolve(image, rows, columns, bytes.data(), std::size_t{23} * 3, kernels);
      return bytes;
    };
    const auto plain = bytes_of(convolve_kernels().back());
    for (const ConvolveKernels& kernels : convolve_kernels()) {
      EXPECT_EQ(bytes_of(kernels), plain) << kernels.name;
    }
  }
}

TEST(Filters, WeightsAddUpToOne) {
  for (const Resize way : {Resize::area, Resize::bilinear, Resize::bicubic}) {
    for (const auto& [in, out] : {std::pair(500, 64), std::pair(7, 64), std::pair(1, 3)}) {
      const FilterTaps filter = filter_taps({in, out, 0, out, 0}, way);
      for (const FilterTaps::Tap& tap : filter.taps) {
        std::int64_t sum = 0;
        for (int i = 0; i < tap.count; ++i) {
          sum += filter.weights[tap.weights_at + static_cast<std::size_t>(i)];
        }
        EXPECT_NEAR(static_cast<double>(sum), 1 << FilterTaps::kBits, tap.count);
      }
    }
  }
}

TEST(Filters, WhatHasTheSizeStaysAsItIs) {
  const Image image = golden_image(13, 13);
  for (const Resize way : kWays) {
    for (const Fitting fit : {Fitting::stretch, Fitting::crop, Fitting::pad}) {
      EXPECT_EQ(fitted(image, {13, 13, 3}, {way, {fit}}), image.rgb) << word_of(way);
    }
  }
}

/// Along the longer side a crop is the middle of what scales it as the shorter side.
TEST(Fit, ACropIsCutFromTheScaledImage) {
  const Image image = golden_image(40, 100);
  for (const Resize way : kWays) {
    const auto scaled = fitted(image, {20, 50, 3}, way);
    const auto crop = fitted(image, {20, 20, 3}, {way, {Fitting::crop}});
    for (std::size_t y = 0; y < 20; ++y) {
      const auto expected = scaled.begin() + static_cast<std::ptrdiff_t>((y * 50 + 15) * 3);
      EXPECT_TRUE(std::equal(expected, expected + 60, crop.begin() + static_cast<long>(y * 60)))
          << word_of(way) << " " << y;
    }
  }
}

TEST(Fit, BarsOfAPaddedImageAreBlackAndItsMiddleIsScaled) {
  const Image image = golden_image(40, 100);
  for (const Resize way : {Resize::bilinear, Resize::nearest, Resize::bilinear_plain}) {
    const auto scaled = fitted(image, {8, 20, 3}, way);
    const auto padded = fitted(image, {20, 20, 3}, {way, {Fitting::pad}});
    for (std::size_t i = 0; i < padded.size(); ++i) {
      const std::size_t row = i / 60;
      EXPECT_EQ(padded[i], row < 6 || row >= 14 ? 0 : scaled[i - 360]) << word_of(way) << " " << i;
    }
  }
}

TEST(Fit, AThinImageKeepsAPixel) {
  const ImageFit fit = fit_image(1, 16384, {64, 64, 3}, {Fitting::pad});
  EXPECT_EQ(fit.rows.count, 1);
  EXPECT_EQ(fit.rows.at, 32);  // 31.5, to the even number as in Python
  EXPECT_EQ(fit.columns.count, 64);
}

TEST(Fit, ACropOfAThinImageComputesOnlyWhatItShows) {
  const ImageFit fit = fit_image(1, 16384, {64, 64, 3}, {Fitting::crop, 1000});
  EXPECT_EQ(fit.columns.resized, std::int64_t{16384} * 640);
  EXPECT_EQ(fit.columns.count, 64);
  EXPECT_EQ(
      fitted(golden_image(1, 16384), {64, 64, 3}, {Resize::bilinear, {Fitting::crop, 1000}}).size(),
      std::size_t{64} * 64 * 3);
}

TEST(ParseFit, ReadsWhatItWrites) {
  for (const char* text : {"stretch", "crop", "crop:0.875", "crop:0.9655", "crop:0.1", "pad"}) {
    EXPECT_EQ(to_text(data::parse_fit(text)), text);
  }
  EXPECT_EQ(data::parse_fit("crop:1"), data::parse_fit("crop"));
  EXPECT_EQ(data::parse_fit("crop:0.875").part, 8750);
}

TEST(ParseFit, RefusesWithWhatIsAllowed) {
  for (const char* text : {"", "cut", "crop:", "crop:0", "crop:2", "crop:0.05", "crop:half",
                           "crop:0.9x", "pad:0.9", "stretch:1", "crop:nan"}) {
    try {
      data::parse_fit(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()).find("--fit " + std::string(text)), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find("crop:PART"), std::string::npos);
    }
  }
}

TEST(InWords, SayWhatWasDoneWithNumbers) {
  EXPECT_EQ(data::in_words({Resize::area}, {64, 64, 3}),
            "stretched to 64x64 by Pillow's BOX (antialias: mean of the pixels whose centres a new "
            "one covers; width first, bytes after each axis)");
  const std::string crop = data::in_words({Resize::bicubic, {Fitting::crop, 8750}}, {224, 224, 3});
  EXPECT_EQ(crop.find("scaled to cover 256x256, of which the central 224x224 are cut out"), 0u);
  EXPECT_NE(crop.find("a = -0.5"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::datasets
