// The budget of decoding, and files that are small and would cost much.
#include "datasets/decode/decoding_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "core/random/random.h"
#include "datasets/decode/limits.h"
#include "tests/datasets/decode/image_files.h"

namespace cputrain::datasets {
namespace {

using Claim = DecodingBudget::Claim;
constexpr auto kMoment = std::chrono::milliseconds(30);

/// Threads that claim in several pieces; what they hold together is counted beside the budget.
TEST(DecodingBudget, HoldsBesideOneImage) {
  constexpr std::size_t kBudget = 1000, kLargest = 700;
  DecodingBudget budget(kBudget);
  std::atomic<std::size_t> in_use{0}, peak{0}, done{0};
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      const RandomStream stream(3, Purpose::noise, thread);
      for (std::uint32_t i = 0; i < 400; ++i) {
        const auto words = stream.at(i);
        std::size_t mine = 0;
        Claim claim(budget);
        for (const std::uint32_t word : words) {
          const std::size_t bytes = below(word, kLargest / 4);
          claim.grow(bytes);
          mine += bytes;
          const std::size_t now = in_use.fetch_add(bytes) + bytes;
          for (std::size_t seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {
          }
          if (i % 50 == 0) std::this_thread::yield();
        }
        in_use -= mine;
        ++done;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(done, 2400u) << "claims that grow must not wait for each other for ever";
  EXPECT_LE(peak, kBudget + kLargest);
}

TEST(DecodingBudget, LetsSeveralImagesInAtATime) {
  DecodingBudget budget(100);
  Claim first(budget);
  first.grow(50);
  std::jthread([&] {
    Claim second(budget);
    second.grow(50);
  }).join();  // returns: the second did not wait for the first
}

TEST(DecodingBudget, OneImageMayNeedMoreAndOthersWaitForIt) {
  DecodingBudget budget(100);
  std::atomic<bool> entered{false};
  std::jthread other;
  {
    Claim large(budget);
    large.grow(60);
    large.grow(5000);
    other = std::jthread([&] {
      Claim small(budget);
      small.grow(1);
      entered = true;
    });
    std::this_thread::sleep_for(kMoment);
    EXPECT_FALSE(entered);
  }
  other.join();
  EXPECT_TRUE(entered);
}

/// A stream of small images on two threads, one of which is always under way, does not keep a large
/// one out.
TEST(DecodingBudget, NobodyStarves) {
  DecodingBudget budget(100);
  std::atomic<bool> stop{false}, large_done{false};
  std::vector<std::jthread> small;
  for (int i = 0; i < 2; ++i) {
    small.emplace_back([&] {
      while (!stop) {
        Claim claim(budget);
        claim.grow(60);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  std::jthread large([&] {
    Claim claim(budget);
    claim.grow(100);
    claim.grow(100);
    large_done = true;
  });
  for (int i = 0; i < 1000 && !large_done; ++i) std::this_thread::sleep_for(kMoment / 3);
  EXPECT_TRUE(large_done);
  stop = true;
}

/// Bytes that decode() claims for a file.
std::size_t claimed(const Bytes& file) {
  DecodingBudget budget;
  Claim claim(budget);
  decode(file, claim);
  return claim.bytes();
}

TEST(DecodingBudget, CountsWhatDecodersKeep) {
  constexpr int kSide = 400;
  constexpr std::size_t kPixels = std::size_t{kSide} * kSide;
  const Image image = smooth_image(kSide, kSide);
  const Bytes plain = jpeg_of(image), scans = jpeg_of(image, JpegKind::progressive);
  EXPECT_EQ(claimed(plain), kPixels * 3);
  EXPECT_EQ(claimed(png_of(image)), kPixels * 3);
  EXPECT_EQ(claimed(bmp_of(image)), kPixels * 3);
  // Coefficients of two bytes, half as many of colour as of brightness, and a margin of blocks.
  EXPECT_GE(claimed(scans), kPixels * 6);
  EXPECT_LT(claimed(scans), kPixels * 8);
  const GoldenFile& tiff = image_file("tiff in planes");
  if (!is_built(tiff)) return;
  EXPECT_GE(claimed(tiff.bytes), 7u * 9 * 13);  // RGBA and RGB
}

TEST(DecodingBudget, CountsWhatLibwebpKeeps) {
  if (!is_built(image_file("webp"))) GTEST_SKIP() << "no libwebp in this build";
  // 13 x 9 pixels. Lossless: RGB, four bytes per pixel, and 8 = 117 / 16 + 1 groups of codes of
  // 21,000 bytes. Lossy: RGB, one column of 16 pixels of 1 KiB, and 1 MiB.
  constexpr std::size_t kPixels = 9 * 13;
  EXPECT_EQ(claimed(image_file("webp lossless").bytes), kPixels * 3 + kPixels * 4 + 8 * 21'000);
  EXPECT_EQ(claimed(image_file("webp").bytes), kPixels * 3 + 1024 + 1'048'576);
  // A canvas of 19 x 16, of which the first frame is 13 x 9.
  EXPECT_EQ(claimed(image_file("webp animated, first frame smaller").bytes),
            std::size_t{19} * 16 * 3 + kPixels * 4 + 8 * 21'000);
}

TEST(DecodingBudget, CountsWhatLibheifKeeps) {
  if (!is_built(image_file("heic"))) GTEST_SKIP() << "no libheif in this build";
  // 14 x 10 pixels: RGB, 16 bytes per pixel or 28 where there are more than 8 bits, 1 MiB, and the
  // file once more.
  constexpr std::size_t kPixels = 14 * 10, kMargin = 1'048'576;
  const Bytes& plain = image_file("avif").bytes;
  EXPECT_EQ(claimed(plain), plain.size() + kPixels * (3 + 16) + kMargin);
  const Bytes& deep = image_file("avif of 10 bits").bytes;
  EXPECT_EQ(claimed(deep), deep.size() + kPixels * (3 + 28) + kMargin);
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Bytes chunk_of(std::string_view kind, const Bytes& data) {
  Bytes chunk(4);
  chunk.insert(chunk.end(), kind.begin(), kind.end());
  chunk.insert(chunk.end(), data.begin(), data.end());
  chunk.resize(chunk.size() + 4);
  return with_png_checksums(patched(chunk, 0, static_cast<std::uint32_t>(data.size()), 4));
}

Bytes deflated_zeros(std::size_t bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes));
  Bytes packed(size);
  const Bytes zeros(bytes);
  compress2(packed.data(), &size, zeros.data(), static_cast<uLong>(bytes), 9);
  packed.resize(size);
  return packed;
}

/// 300 texts and a colour profile, each of 7 MB in 7 kB. Texts are not pixels.
TEST(Bombs, TextsOfAPngAreNotInflated) {
  const Image image = smooth_image(9, 7);
  const Bytes png = png_of(image), packed = deflated_zeros(7'000'000);
  const std::size_t after_header = 33;
  Bytes bomb = prefix(png, after_header);
  const auto add = [&](std::string_view kind, std::string_view name) {
    Bytes data = bytes_of(name);
    data.insert(data.end(), {0, 0});  // end of the name, deflate
    data.insert(data.end(), packed.begin(), packed.end());
    const Bytes signature(8);
    Bytes chunk = signature;  // with_png_checksums begins behind one
    const Bytes bare = chunk_of(kind, data);
    chunk.insert(chunk.end(), bare.begin(), bare.end());
    chunk = with_png_checksums(chunk);
    bomb.insert(bomb.end(), chunk.begin() + 8, chunk.end());
  };
  add("iCCP", "profile");
  for (int i = 0; i < 300; ++i) add("zTXt", "Comment");
  bomb.insert(bomb.end(), png.begin() + static_cast<std::ptrdiff_t>(after_header), png.end());
  const long before = peak_kilobytes();
  const Decoded decoded = decode(bomb);
  EXPECT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
  EXPECT_EQ(decoded.image.rgb, image.rgb);
  EXPECT_LT(peak_kilobytes() - before, 100'000);
}

TEST(Bombs, ScansOfAJpegAreCounted) {
  EXPECT_EQ(decode(jpeg_of_scans(16, 16, 250)).result.status, data::ReadStatus::truncated)
      << "few enough, though they hold nothing";
  const data::ReadResult many = decode(jpeg_of_scans(16, 16, 300)).result;
  EXPECT_EQ(many.status, data::ReadStatus::too_large);
  EXPECT_NE(many.detail.find("256 scans"), std::string::npos) << many.detail;
  // 16384 x 5461 is just within the limit of pixels; 2.5e9 / 89,472,... = 27.9 scans.
  const data::ReadResult large = decode(jpeg_of_scans(16384, 5461, 40)).result;
  EXPECT_EQ(large.status, data::ReadStatus::too_large);
  EXPECT_NE(large.detail.find("28 scans"), std::string::npos) << large.detail;
  EXPECT_NE(large.detail.find("2,500,000,000"), std::string::npos) << large.detail;
}

/// One scan, but of a coding that makes samples of nothing, slowly.
TEST(Bombs, ArithmeticCodingCountsMore) {
  const data::ReadResult large = decode(jpeg_of_scans(16384, 5461, 1, 0xC9)).result;
  EXPECT_EQ(large.status, data::ReadStatus::too_large) << large.detail;
  EXPECT_NE(decode(jpeg_of_scans(16, 16, 1, 0xC9)).result.status, data::ReadStatus::too_large);
}

/// 9459 x 9459 pixels and codes for a hundred: known before pixels have cost more than themselves.
TEST(Bombs, FewCodesForALargeGif) {
  const GoldenFile& file = image_file("gif of a large screen and few codes");
  EXPECT_EQ(claimed(file.bytes), std::size_t{9459} * 9459 * 3);
  EXPECT_EQ(decode(file.bytes).result.status, data::ReadStatus::truncated);
}

/// Only the first image of an animation is decoded, whatever follows: what is not even looked at
/// costs nothing.
TEST(Bombs, ImagesOfAGifBehindTheFirstCostNothing) {
  const GoldenFile& one = image_file("gif with a palette of its image");
  const Bytes first = prefix(one.bytes, one.bytes.size() - 1);
  const Bytes image(first.begin() + 13, first.end());
  Bytes many = first, odd = first;
  for (int i = 0; i < 1000; ++i) many.insert(many.end(), image.begin(), image.end());
  odd.insert(odd.end(), {0x99, 0x2C, 0xFF, 0xFF, 0xFF});  // no block that there is
  for (const Bytes& file : {many, odd}) {
    const Decoded decoded = decode(file);
    EXPECT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
    EXPECT_FALSE(decoded.result.warned);
    EXPECT_EQ(decoded.image.rgb, one.image.rgb);
    EXPECT_EQ(claimed(file), claimed(one.bytes));
  }
}

Bytes little_endian(std::uint32_t value, int bytes) {
  Bytes all;
  for (int i = 0; i < bytes; ++i) all.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  return all;
}

/// A TIFF whose directory is written again behind the file, with so many private tags more, all of
/// them with the same value of `bytes` bytes.
Bytes tiff_of_tags(const Bytes& tiff, int tags, std::uint32_t bytes) {
  const std::size_t begin = tiff[4] + 256u * tiff[5],
                    entries = tiff[begin] + 256u * tiff[begin + 1];
  Bytes file = tiff;
  const auto add = [&](const Bytes& more) { file.insert(file.end(), more.begin(), more.end()); };
  const auto value = static_cast<std::uint32_t>(file.size());
  file.resize(file.size() + bytes, 'x');
  const Bytes place = little_endian(static_cast<std::uint32_t>(file.size()), 4);
  add(little_endian(static_cast<std::uint32_t>(entries) + static_cast<std::uint32_t>(tags), 2));
  add(Bytes(tiff.begin() + static_cast<std::ptrdiff_t>(begin + 2),
            tiff.begin() + static_cast<std::ptrdiff_t>(begin + 2 + entries * 12)));
  for (std::uint32_t tag = 0; tag < static_cast<std::uint32_t>(tags); ++tag) {
    add(little_endian(50'000 + tag, 2));
    add(little_endian(1, 2));  // bytes
    add(little_endian(bytes, 4));
    add(little_endian(value, 4));
  }
  add(little_endian(0, 4));
  std::copy(place.begin(), place.end(), file.begin() + 4);
  return file;
}

/// libtiff keeps the values of tags that it does not know: 5 GB of a file of 1 MB.
TEST(Bombs, TagsOfATiffThatLieOnEachOther) {
  const GoldenFile& plain = image_file("tiff");
  if (!is_built(plain)) GTEST_SKIP() << "no libtiff in this build";
  ASSERT_EQ(plain.bytes[0], 'I');
  const Bytes bomb = tiff_of_tags(plain.bytes, 5000, 1'000'000);
  EXPECT_EQ(claimed(bomb), 0u) << "refused before memory is asked for";
  const data::ReadResult result = decode(bomb).result;
  EXPECT_EQ(result.status, data::ReadStatus::not_an_image);
  EXPECT_NE(result.detail.find("tags lie on each other"), std::string::npos) << result.detail;
  // One large value, as that of a profile is, and its share of the budget.
  const Bytes large = tiff_of_tags(plain.bytes, 1, 1'000'000);
  EXPECT_GE(claimed(large), claimed(plain.bytes) + 1'000'000);
  EXPECT_LT(claimed(large), claimed(plain.bytes) + 10'000'000);
  EXPECT_EQ(decode(large).image.rgb, plain.image.rgb) << decode(large).result.detail;
}

/// 256 million pixels in the header; 4.4 million in a coded picture that the header calls tiny.
TEST(Bombs, HeicAndAvifBeyondTheirPixels) {
  for (const std::string kind : {"heic", "avif"}) {
    const GoldenFile& vast = image_file(kind + " that says a vast size");
    if (!is_built(vast)) GTEST_SKIP() << "no libheif in this build";
    EXPECT_EQ(claimed(vast.bytes), vast.bytes.size()) << kind;
    const long before = peak_kilobytes();
    const GoldenFile& hidden = image_file(kind + " of far more pixels than it says");
    const data::ReadResult result = decode(hidden.bytes).result;
    EXPECT_EQ(result.status, data::ReadStatus::too_large) << result.detail;
    EXPECT_LT(peak_kilobytes() - before, 4000) << kind;
  }
}

TEST(Bombs, WebpBeyondThePixelsIsRefusedByItsHeader) {
  for (const char* name : {"webp lossless", "webp with alpha", "webp animated"}) {
    const GoldenFile& file = image_file(name);
    if (!is_built(file)) GTEST_SKIP() << "no libwebp in this build";
    const bool canvas = std::string_view(name) != "webp lossless";
    // Sides less one: 24 bits each behind the flags of VP8X; 14 bits each behind VP8L's signature.
    const std::size_t at = position_of(file.bytes, canvas ? "VP8X" : "VP8L");
    const Bytes bomb =
        canvas ? patched(patched(file.bytes, at + 12, 0xFF3F00, 3), at + 15, 0xFF3F00, 3)
               : patched(file.bytes, at + 9, 0xFFFFFF0F, 4);
    EXPECT_EQ(decode(bomb).result.status, data::ReadStatus::too_large) << name;
    EXPECT_EQ(claimed(bomb), 0u) << name;
  }
}

}  // namespace
}  // namespace cputrain::datasets
