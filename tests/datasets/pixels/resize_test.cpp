#include "datasets/pixels/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/datasets/made_files.h"
#include "tests/datasets/pixels/golden_images.h"

namespace cputrain::datasets {
namespace {

/// Channel c of pixel (y, x) is (53 (y width + x) + 101 c) mod 256.
Image stepped_image(int height, int width) {
  Image image{width, height, {}};
  for (int i = 0; i < height * width; ++i) {
    for (int c = 0; c < 3; ++c) {
      image.rgb.push_back(static_cast<std::uint8_t>((i * 53 + c * 101) % 256));
    }
  }
  return image;
}

std::vector<std::uint8_t> resized(const Image& image, int height, int width) {
  const Shape size{height, width, 3};
  std::vector<std::uint8_t> bytes(size.size());
  resize_image(image, size, data::Resize::bilinear_plain, bytes);
  return bytes;
}

struct Case {
  int height, width, new_height, new_width;
  std::vector<double> expected;
};

// Computed with torch.nn.functional.interpolate(double, mode="bilinear", align_corners=False,
// antialias=False) of PyTorch 1.13, whose formula is that of tf.image.resize of TensorFlow 2.
TEST(Resize, AgreesWithAnIndependentImplementation) {
  const std::vector<Case> cases = {
      {2, 3, 4, 5, {0.0000,   101.0000, 202.0000, 21.2000,  122.2000, 223.2000, 53.0000,  154.0000,
                    255.0000, 84.8000,  185.8000, 133.2000, 106.0000, 207.0000, 52.0000,  39.7500,
                    76.7500,  177.7500, 60.9500,  97.9500,  198.9500, 92.7500,  129.7500, 230.7500,
                    86.1500,  161.5500, 147.3500, 81.7500,  182.7500, 91.7500,  119.2500, 28.2500,
                    129.2500, 140.4500, 49.4500,  150.4500, 172.2500, 81.2500,  182.2500, 88.8500,
                    113.0500, 175.6500, 33.2500,  134.2500, 171.2500, 159.0000, 4.0000,   105.0000,
                    180.2000, 25.2000,  126.2000, 212.0000, 57.0000,  158.0000, 90.2000,  88.8000,
                    189.8000, 9.0000,   110.0000, 211.0000}},
      {7, 5, 3, 4, {12.6250,  113.6250, 193.2917, 78.8750,  179.8750, 78.2083,  145.1250, 86.1250,
                    91.1250,  211.3750, 56.3750,  157.3750, 33.6250,  134.6250, 203.6250, 99.8750,
                    200.8750, 45.8750,  166.1250, 107.1250, 112.1250, 232.3750, 77.3750,  178.3750,
                    54.6250,  155.6250, 149.9583, 120.8750, 189.8750, 66.8750,  187.1250, 96.1250,
                    133.1250, 29.3750,  98.3750,  199.3750}},
      {5,
       1,
       2,
       3,
       {39.7500, 140.7500, 241.7500, 39.7500, 140.7500, 241.7500, 39.7500, 140.7500, 241.7500,
        172.2500, 17.2500, 118.2500, 172.2500, 17.2500, 118.2500, 172.2500, 17.2500, 118.2500}}};
  for (const Case& one : cases) {
    const auto bytes = resized(stepped_image(one.height, one.width), one.new_height, one.new_width);
    ASSERT_EQ(bytes.size(), one.expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_NEAR(bytes[i], one.expected[i], 0.5001) << one.height << "x" << one.width << " " << i;
    }
  }
}

TEST(Resize, SameSizeGivesTheSameBytes) {
  const Image image = stepped_image(13, 17);
  EXPECT_EQ(resized(image, 13, 17), image.rgb);
}

TEST(Resize, OneColourStaysOneColour) {
  Image image{31, 9, {}};
  for (int i = 0; i < 31 * 9; ++i) image.rgb.insert(image.rgb.end(), {255, 0, 77});
  const auto bytes = resized(image, 64, 5);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    EXPECT_EQ(bytes[i], 255);
    EXPECT_EQ(bytes[i + 1], 0);
    EXPECT_EQ(bytes[i + 2], 77);
  }
}

/// A slope stays the same slope: pixel centres map to pixel centres.
TEST(Resize, HalvingTakesTheMeanOfTwoNeighbours) {
  Image image{8, 2, {}};
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 8; ++x)
      image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(20 * x));
  }
  const auto bytes = resized(image, 1, 4);
  for (int x = 0; x < 4; ++x) EXPECT_EQ(bytes[static_cast<std::size_t>(x) * 3], 40 * x + 10);
}

/// Column x of a wide image is 256 r + g; the same along the other axis.
TEST(ResizeNearest, ShowsThePixelsThatPillowShows) {
  for (const auto& one : golden_images().at("nearest")) {
    const int side = one.at("side"), count = one.at("new");
    const std::vector<int> expected = one.at("shows");
    for (const bool tall : {false, true}) {
      Image image{tall ? 1 : side, tall ? side : 1, {}};
      for (int i = 0; i < side; ++i) {
        for (const int value : {i / 256, i % 256, 0}) {
          image.rgb.push_back(static_cast<std::uint8_t>(value));
        }
      }
      const Shape size{tall ? count : 1, tall ? 1 : count, 3};
      std::vector<std::uint8_t> bytes(size.size());
      resize_image(image, size, data::Resize::nearest, bytes);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(bytes[3 * i] * 256 + bytes[3 * i + 1], expected[i])
            << side << " to " << count << ", " << i;
      }
    }
  }
}

TEST(ResizeNearest, AnImageAsPillowMakesIt) {
  const auto& golden = golden_images().at("nearest_image");
  const Shape size{golden.at("new_height"), golden.at("new_width"), 3};
  std::vector<std::uint8_t> bytes(size.size());
  resize_image(golden_image(golden.at("height"), golden.at("width")), size, data::Resize::nearest,
               bytes);
  EXPECT_EQ(bytes, golden.at("pixels").get<std::vector<std::uint8_t>>());
}

}  // namespace
}  // namespace cputrain::datasets
