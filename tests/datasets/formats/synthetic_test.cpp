#include "datasets/formats/synthetic.h"

#include <gtest/gtest.h>
#include <filesystem>

#include <array>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "datasets/datasets.h"
#include "datasets/formats/synth.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

std::vector<std::uint8_t> pixels_of(const data::Dataset& data, std::size_t index, Shape image) {
  std::vector<std::uint8_t> pixels(image.size());
  EXPECT_EQ(data.read(index, image, data::Resize::bilinear, pixels).status, data::ReadStatus::ok);
  return pixels;
}

TEST(Synthetic, IsAFunctionOfSeedAndIndex) {
  const Shape image{40, 24, 3};
  const auto data = make_synthetic_dataset(10, 1), larger = make_synthetic_dataset(1000, 1),
             other = make_synthetic_dataset(10, 2);
  EXPECT_EQ(pixels_of(*data, 3, image), pixels_of(*larger, 3, image));
  EXPECT_NE(pixels_of(*data, 3, image), pixels_of(*data, 5, image));
  EXPECT_NE(pixels_of(*data, 3, image), pixels_of(*other, 3, image));
  EXPECT_NE(data->fingerprint(), larger->fingerprint());
  EXPECT_NE(data->fingerprint(), other->fingerprint());
}

TEST(Synthetic, ClassesAreBalancedAndNoStrideMeetsOneOnly) {
  const auto data = make_synthetic_dataset(960, 3);
  for (const std::size_t stride : {1u, 2u, 3u, 96u}) {
    std::array<int, 2> count{};
    for (std::size_t i = 0; i < 960; i += stride) ++count[static_cast<std::size_t>(data->label(i))];
    if (stride == 1) {
      EXPECT_EQ(count[0], 480);
    }
    EXPECT_GT(count[0], 0);
    EXPECT_GT(count[1], 0);
  }
}

/// What the classes differ in, and how much the mean colour tells: a threshold on red minus blue,
/// the best that the mean has, must not separate them.
TEST(Synthetic, EdgesTellTheClassesApartAndTheMeanColourDoesNot) {
  const Shape image{64, 64, 3};
  const auto data = make_synthetic_dataset(400, 4);
  int right_by_mean = 0, right_by_edges = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    const auto pixels = pixels_of(*data, i, image);
    std::array<double, 3> sum{};
    double edges = 0;
    for (std::size_t p = 0; p < std::size_t{64} * 64; ++p) {
      for (std::size_t c = 0; c < 3; ++c) sum[c] += pixels[p * 3 + c];
      if (p % 64 != 63) edges += std::abs(pixels[p * 3 + 1] - pixels[p * 3 + 4]) > 30 ? 1 : 0;
    }
    right_by_mean += (sum[0] > sum[2]) == (data->label(i) == 1) ? 1 : 0;
    right_by_edges += (edges > 40) == (data->label(i) == 1) ? 1 : 0;
  }
  EXPECT_LT(right_by_mean, 400 * 0.9);
  EXPECT_GT(right_by_edges, 400 * 0.99);
}

/// PNG keeps every pixel, so the files hold what --data synthetic draws; JPEG comes near.
TEST(Synth, WritesTheSyntheticImagesIntoClassFolders) {
  const data::DataPipeline pipeline = make_data_pipeline();
  for (const std::string format : {"png", "bmp", "jpeg"}) {
    testing::TemporaryFolder folder;
    const std::string path = (folder.path() / "made").string();
    pipeline.synth({path, 12, {32, 32, 3}, format, 5});
    const data::DataSource files = pipeline.open({.spec = path, .validation_split = 0});
    const data::DataSource drawn =
        pipeline.open({.spec = "synthetic:12", .validation_split = 0, .seed = 5});
    ASSERT_EQ(files.dataset->size(), 12u);
    EXPECT_EQ(files.dataset->classes(), drawn.dataset->classes());
    Bytes a(Shape{32, 32, 3}.size()), b(a.size());
    for (std::size_t i = 0; i < 12; ++i) {
      const std::string name = std::filesystem::path(files.dataset->name(i)).stem().string();
      const auto number = static_cast<std::size_t>(std::stoi(name));
      EXPECT_EQ(files.dataset->label(i), drawn.dataset->label(number));
      ASSERT_EQ(files.dataset->read(i, {32, 32, 3}, data::Resize::bilinear, a).status,
                data::ReadStatus::ok);
      drawn.dataset->read(number, {32, 32, 3}, data::Resize::bilinear, b);
      double far = 0;
      for (std::size_t k = 0; k < a.size(); ++k) far += std::abs(a[k] - b[k]);
      EXPECT_LE(far / static_cast<double>(a.size()), format == "jpeg" ? 6.0 : 0.0) << format;
      EXPECT_FALSE(files.dataset->inspect(i).wrong_extension);
    }
    testing::refused(ExitCode::usage, [&] { pipeline.synth({path, 12, {32, 32, 3}, format, 5}); });
  }
}

}  // namespace
}  // namespace cputrain::datasets
