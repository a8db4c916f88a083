#include "datasets/formats/synth.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "datasets/datasets.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

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
