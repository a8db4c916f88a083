// Data that end in the middle of a strip, a tile or a chunk, in a file that is whole: the
// containers of JPEG, fax, LZW, deflate, run lengths and VP8 say nothing of what is missing.
#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/decode/decoders.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/decode/made_tiff.h"

namespace cputrain::datasets {
namespace {

std::string outcome(const Bytes& file) {
  const Decoded decoded = decode(file);
  return std::string(word_of(decoded.result.status)) + ": " + decoded.result.detail;
}

const std::string kTruncated = "truncated: its data end before its last pixel";

const Bytes kFrame = bytes_of("ANMF"), kLossless = bytes_of("VP8L");

/// Cuts say "truncated", or the image is what it was: then the bytes that were cut held no pixel.
struct Cuts {
  std::size_t truncated = 0, whole = 0, other = 0;

  void add(const Bytes& cut, const Image& image, const std::string& name) {
    const Decoded decoded = decode(cut);
    if (decoded.result.status == data::ReadStatus::ok) {
      ++whole;
      EXPECT_TRUE(decoded.image.rgb == image.rgb) << name;
    } else if (outcome(cut) == kTruncated) {
      ++truncated;
    } else {
      ++other;
      EXPECT_EQ(decoded.result.status, data::ReadStatus::not_an_image) << name;
    }
  }
};

/// The end of the last piece and of the first one, a byte at a time.
TEST(MissingData, InStripsAndTilesOfATiff) {
  std::size_t files = 0;
  for (const GoldenFile& file : image_files()) {
    if (!file.name.starts_with("tiff") || !is_built(file) || file.status != "ok") continue;
    const PieceCounts counts = piece_counts(file.bytes);
    if (counts.number == 0) continue;  // of 64 bits, or of the other byte order
    const Image whole = decode(file.bytes).image;
    Cuts cuts;
    for (const std::size_t piece : {std::size_t{0}, counts.number - 1}) {
      const std::uint32_t bytes = counts.of(file.bytes, piece);
      for (std::uint32_t left = bytes > 60 ? bytes - 60 : 0; left < bytes; ++left) {
        cuts.add(counts.with(file.bytes, piece, left), whole, file.name);
      }
    }
    // libtiff knows how long the only strip of plain pixels is; fax data that end within a code may
    // seem to hold a wrong one.
    const bool corrected = cuts.truncated == 0 && counts.number == 1;
    EXPECT_TRUE(corrected || cuts.truncated > 20 * cuts.other) << file.name << " " << cuts.other;
    EXPECT_TRUE(corrected || cuts.truncated > 2 * cuts.whole) << file.name << " " << cuts.whole;
    files += corrected ? 0 : 1;
  }
  EXPECT_TRUE(tiff_library().empty() || files > 40) << files;
}

Bytes with_number(Bytes file, std::size_t at, std::size_t number) {
  for (std::size_t i = 0; i < 4; ++i) file.at(at + i) = static_cast<std::uint8_t>(number >> 8 * i);
  return file;
}

/// A WebP whose image data are cut, with lengths of all chunks that say so.
Bytes shortened(const Bytes& webp, std::size_t data, std::size_t bytes) {
  Bytes file = with_number(prefix(webp, data + bytes), data - 4, bytes);
  if (bytes % 2 != 0) file.push_back(0);
  const auto frame = std::search(webp.begin(), webp.end(), kFrame.begin(), kFrame.end());
  if (frame != webp.end()) {
    const auto at = static_cast<std::size_t>(frame - webp.begin()) + 4;
    file = with_number(std::move(file), at, file.size() - at - 4);
  }
  return with_number(std::move(file), 4, file.size() - 8);
}

TEST(MissingData, InAChunkOfAWebp) {
  for (const GoldenFile& file : image_files()) {
    if (!file.name.starts_with("webp") || !is_built(file) || file.status != "ok") continue;
    const bool lossless = std::search(file.bytes.begin(), file.bytes.end(), kLossless.begin(),
                                      kLossless.end()) != file.bytes.end();
    const std::size_t data = position_of(file.bytes, lossless ? "VP8L" : "VP8 ") + 8;
    std::size_t bytes = 0;
    for (std::size_t i = 4; i-- > 0;) bytes = bytes << 8 | file.bytes[data - 4 + i];
    ASSERT_TRUE(shortened(file.bytes, data, bytes).size() <= file.bytes.size());
    const Image whole = decode(file.bytes).image;
    ASSERT_TRUE(decode(shortened(file.bytes, data, bytes)).image.rgb == whole.rgb) << file.name;
    Cuts cuts;
    for (std::size_t left = 1; left < bytes; ++left) {
      cuts.add(shortened(file.bytes, data, left), whole, file.name);
    }
    // libwebp says of lossless data that are cut that they are damaged.
    EXPECT_TRUE(lossless || cuts.other == 0) << file.name << " " << cuts.other;
    EXPECT_LT(cuts.whole, 3u) << file.name;
  }
}

/// The words are those of a JPEG, whatever the format.
TEST(MissingData, IsSaidInTheSameWords) {
  const Image image = smooth_image(40, 30);
  for (const Bytes& file :
       {jpeg_of(image), jpeg_of(image, JpegKind::progressive), png_of(image), bmp_of(image)}) {
    EXPECT_EQ(outcome(prefix(file, file.size() / 2)), kTruncated);
    EXPECT_EQ(outcome(prefix(file, 20)), kTruncated);
  }
  for (const GoldenFile& file : image_files()) {
    if (file.status == "truncated" && file.strict == file.status && is_built(file)) {
      EXPECT_EQ(outcome(file.bytes), kTruncated) << file.name;
    }
  }
}

}  // namespace
}  // namespace cputrain::datasets
