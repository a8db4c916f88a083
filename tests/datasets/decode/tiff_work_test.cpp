// TIFF is no second door: JPEG in it costs no more than a JPEG may, and nothing that libtiff or
// libjpeg say reaches the terminal.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "datasets/decode/decoders.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/decode/made_tiff.h"

namespace cputrain::datasets {
namespace {

constexpr std::uint16_t kJpeg = 7;

/// A progressive JPEG of 8x8 pixels that is complete: a bit of 0 in each scan, filled up with ones.
Bytes complete_jpeg(int scans) { return jpeg_of_scans(8, 8, scans, 0xC2, {0x7F}); }

class TiffWork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tiff_library().empty()) GTEST_SKIP() << "no libtiff in this build";
  }
};

TEST_F(TiffWork, HasTheLimitsAndTheWordsOfAJpeg) {
  std::size_t pairs = 0;
  for (const GoldenFile& jpeg : image_files()) {
    if (!jpeg.name.starts_with("jpeg of ")) continue;
    const GoldenFile& tiff = image_file("tiff of a JPEG of " + jpeg.name.substr(8));
    const Decoded a = decode(jpeg.bytes), b = decode(tiff.bytes);
    EXPECT_EQ(a.result.status, b.result.status) << jpeg.name;
    EXPECT_EQ(a.result.detail, b.result.detail) << jpeg.name;
    ++pairs;
  }
  EXPECT_GE(pairs, 4u);
}

/// A scan counts 2048 samples at least, so 2.5e9 are 1,220,703 scans: 4882 streams of 250.
TEST_F(TiffWork, IsThatOfAllStreamsTogether) {
  const Bytes tile = complete_jpeg(250);
  ASSERT_EQ(decode(tile).result.status, data::ReadStatus::ok) << decode(tile).result.detail;
  const Decoded few = decode(tiff_of({8, 30, kJpeg, tile}));
  EXPECT_EQ(few.result.status, data::ReadStatus::ok) << few.result.detail;
  EXPECT_EQ(few.image.width, 240);
  const data::ReadResult many = decode(tiff_of({8, 70, kJpeg, tile})).result;
  EXPECT_EQ(many.status, data::ReadStatus::too_large);
  EXPECT_NE(many.detail.find("above 2,500,000,000 samples x scans"), std::string::npos)
      << many.detail;
}

/// libtiff's own limit is 100 scans, or what an environment variable says.
TEST_F(TiffWork, IsNotWhatTheEnvironmentSays) {
  const Bytes file = tiff_of({8, 1, kJpeg, complete_jpeg(200)});
  EXPECT_EQ(decode(file).result.status, data::ReadStatus::ok) << decode(file).result.detail;
  setenv("LIBTIFF_JPEG_MAX_ALLOWED_SCAN_NUMBER", "5", 1);
  EXPECT_EQ(decode(file).result.status, data::ReadStatus::ok) << decode(file).result.detail;
  unsetenv("LIBTIFF_JPEG_MAX_ALLOWED_SCAN_NUMBER");
  const data::ReadResult many = decode(tiff_of({8, 1, kJpeg, complete_jpeg(257)})).result;
  EXPECT_EQ(many.detail, decode(complete_jpeg(257)).result.detail);
}

/// A tile is claimed whole, however small its image is.
TEST_F(TiffWork, OfATileLargerThanItsImageIsClaimed) {
  const GoldenFile& file = image_file("tiff in a tile larger than the image");
  DecodingBudget budget;
  DecodingBudget::Claim claim(budget);
  decode(file.bytes, claim);
  EXPECT_GE(claim.bytes(), std::size_t{64} * 48 * 3);
}

TEST_F(TiffWork, SaysNothingToTheTerminal) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  for (const GoldenFile& file : image_files()) {
    decode(file.bytes);
    if (file.status == "too large") continue;  // a little smaller they would only be slow
    for (std::size_t at = 8; at < file.bytes.size(); at += 97) {
      decode(patched(file.bytes, at, 0xFF, 1));
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace cputrain::datasets
