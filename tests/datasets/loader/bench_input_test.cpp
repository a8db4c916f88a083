#include "datasets/loader/bench_input.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "datasets/datasets.h"
#include "datasets/decode/decode.h"
#include "datasets/decode/turbo_decoder.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

/// The limit must do the same work: with other settings its pixels would differ.
TEST(BenchInput, LimitDecodesToTheSamePixels) {
  TurboDecoder codec;
  for (const auto& [width, height] : {std::pair{67, 45}, {640, 3}, {16, 200}}) {
    for (const JpegKind kind : {JpegKind::rgb, JpegKind::progressive, JpegKind::grey}) {
      const Bytes file = jpeg_of(smooth_image(width, height), kind);
      const Decoded ours = decode(file);
      ASSERT_EQ(ours.result.status, data::ReadStatus::ok);
      const auto theirs = codec.decode(file);
      EXPECT_TRUE(std::ranges::equal(ours.image.rgb, theirs))
          << width << "x" << height << ", kind " << static_cast<int>(kind);
    }
  }
}

TEST(BenchInput, LimitRefusesWhatIsDamaged) {
  TurboDecoder codec;
  const Bytes whole = jpeg_of(smooth_image(60, 40));
  EXPECT_TRUE(codec.decode(prefix(whole, whole.size() / 2)).empty());
  EXPECT_TRUE(codec.decode(png_of(smooth_image(9, 9))).empty());
  EXPECT_EQ(codec.decode(whole).size(), 60u * 40 * 3) << "works again after a failure";
}

class BenchInputRun : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) {
    write_bytes(folder_.path() / name, bytes);
  }
  data::DataSource open() const {
    return make_data_pipeline().open(
        {.spec = folder_.path().string(), .validation_split = 0, .seed = 0});
  }

  testing::TemporaryFolder folder_;
  const data::InputBenchRequest request_{.data = "made",
                                         .image = {24, 24, 3},
                                         .augment = {.flip = true},
                                         .micro_batch = 2,
                                         .threads = 2,
                                         .repeat = 3};
};

TEST_F(BenchInputRun, TimesEveryStageOnceARound) {
  for (const char* name : {"cat/1.jpg", "cat/2.jpg", "dog/1.jpg"}) {
    write(name, jpeg_of(smooth_image(50, 40)));
  }
  write("dog/progressive.jpg", jpeg_of(smooth_image(50, 40), JpegKind::progressive));
  write("dog/cut.jpg", prefix(jpeg_of(smooth_image(50, 40)), 300));
  write("dog/inks.jpg", jpeg_of(smooth_image(50, 40), JpegKind::cmyk_adobe));
  write("dog/1.png", png_of(smooth_image(9, 9)));
  const data::InputBench bench = bench_input(open(), request_);
  EXPECT_EQ(bench.images, 4u);
  EXPECT_EQ(bench.left_out, 3u) << "TurboJPEG makes no RGB of four inks";
  EXPECT_NEAR(bench.megapixels, 4 * 50 * 40 / 1e6, 1e-12);
  std::vector<data::InputStage> stages{bench.codec};
  stages.insert(stages.end(), bench.decoding.begin(), bench.decoding.end());
  stages.insert(stages.end(), bench.batches.begin(), bench.batches.end());
  EXPECT_EQ(stages.size(), 6u);
  for (const data::InputStage& stage : stages) {
    ASSERT_EQ(stage.seconds.size(), 3u) << stage.name;
    for (const double seconds : stage.seconds) EXPECT_GT(seconds, 0) << stage.name;
  }
}

TEST_F(BenchInputRun, RefusesDataWithoutAJpeg) {
  write("cat/1.png", png_of(smooth_image(9, 9)));
  write("dog/1.png", png_of(smooth_image(8, 9)));
  try {
    bench_input(open(), request_);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("JPEG"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cputrain::datasets
