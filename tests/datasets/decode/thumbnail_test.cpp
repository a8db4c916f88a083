// Small images for pages: their size, their pixels, and what kind of file they are.

#include "datasets/decode/thumbnail.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "datasets/decode/decode.h"

namespace cputrain::datasets {
namespace {

/// Each pixel (row, column, 7).
std::vector<std::uint8_t> ramp(Shape shape) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width; ++x) {
      for (const int value : {y, x, 7}) pixels.push_back(static_cast<std::uint8_t>(value));
    }
  }
  return pixels;
}

Image decoded(const data::Thumbnail& thumbnail) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(thumbnail.file.data());
  const Decoded image = decode({bytes, thumbnail.file.size()});
  EXPECT_EQ(image.result.status, data::ReadStatus::ok);
  EXPECT_EQ(image.image.width, thumbnail.width);
  EXPECT_EQ(image.image.height, thumbnail.height);
  return image.image;
}

TEST(Thumbnail, SmallImagesAreWhatTheyAreAndTurned) {
  const Shape shape{20, 20, 3};
  const std::vector<std::uint8_t> pixels = ramp(shape);
  const auto plain = make_thumbnail(pixels, shape, data::Turn::none, 128);
  EXPECT_EQ(plain.type, "image/png");
  EXPECT_EQ(decoded(plain).rgb, pixels);
  const Image flipped = decoded(make_thumbnail(pixels, shape, data::Turn::flip_vertical, 128));
  EXPECT_EQ(flipped.rgb[0], 19);  // the last row is the first
}

TEST(Thumbnail, LargeImagesShrinkToMeans) {
  const Shape shape{120, 240, 3};
  const auto small = make_thumbnail(ramp(shape), shape, data::Turn::none, 60);
  EXPECT_EQ(small.type, "image/jpeg");
  EXPECT_EQ((std::pair{small.width, small.height}), (std::pair{60, 30}));
  const Image image = decoded(small);
  // Means of four rows and columns each; JPEG loses a little.
  for (int y = 1; y < 29; ++y) {
    for (int x = 1; x < 59; ++x) {
      const auto* pixel = &image.rgb[static_cast<std::size_t>((y * 60 + x) * 3)];
      ASSERT_LE(std::abs(pixel[0] - (4 * y + 1.5)), 12) << y << " " << x;
      ASSERT_LE(std::abs(pixel[1] - (4 * x + 1.5)), 12) << y << " " << x;
    }
  }
}

}  // namespace
}  // namespace cputrain::datasets
