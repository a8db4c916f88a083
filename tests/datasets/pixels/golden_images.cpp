#include "tests/datasets/pixels/golden_images.h"

#include "tests/support/test_data.h"

namespace cputrain::datasets {

const nlohmann::json& golden_images() {
  static const nlohmann::json golden =
      nlohmann::json::parse(testing::test_data("datasets/pixels/images.json"));
  return golden;
}

Image golden_image(int height, int width) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int value = y * 37 + x * 23 + c * 71 + x * y * 5;
        image.rgb.push_back(static_cast<std::uint8_t>(value % 256));
      }
    }
  }
  return image;
}

}  // namespace cputrain::datasets
