// Small files of every format against other people's programs, and each one decoded over memory
// that holds something else: a pixel that nobody wrote would differ.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "datasets/decode/decoders.h"
#include "datasets/decode/limits.h"
#include "tests/datasets/decode/filled_memory.h"
#include "tests/datasets/decode/image_files.h"

namespace cputrain::datasets {
namespace {

TEST(ImageFiles, AreWhatOtherProgramsSee) {
  std::size_t good = 0;
  for (const GoldenFile& file : image_files()) {
    if (!is_built(file)) continue;
    const Decoded decoded = decode(file.bytes);
    const std::string_view status = word_of(decoded.result.status);
    EXPECT_TRUE(status == file.status || status == file.strict)
        << file.name << ": " << status << ", " << decoded.result.detail;
    EXPECT_EQ(decoded.result.detail.empty(), file.status == "ok") << file.name;
    if (file.status != "ok" || decoded.result.status != data::ReadStatus::ok) continue;
    EXPECT_LE(largest_difference(decoded.image, file.image), file.tolerance) << file.name;
    ++good;
  }
  EXPECT_GT(good, 30u);
}

TEST(ImageFiles, AreUnsupportedWhereTheLibraryIsLeftOut) {
  for (const char* name : {"webp", "tiff", "heic", "avif"}) {
    const GoldenFile& file = image_file(name);
    if (is_built(file)) continue;
    const data::ReadResult result = decode(file.bytes).result;
    EXPECT_EQ(result.status, data::ReadStatus::unsupported);
    EXPECT_NE(result.detail.find("CPUTRAIN_"), std::string::npos) << result.detail;
  }
}

/// Every beginning of every good file is refused, or shows what the whole file does: the pixels of
/// a file that was cut are never those that happened to lie in memory.
TEST(ImageFiles, CutAnywhereGiveNoOtherPixels) {
  for (const GoldenFile& file : image_files()) {
    if (!is_built(file) || file.status != "ok") continue;
    const Decoded whole = decode(file.bytes);
    std::size_t truncated = 0;
    for (std::size_t size = 18; size < file.bytes.size(); ++size) {
      const Decoded cut = decode(prefix(file.bytes, size));
      truncated += cut.result.status == data::ReadStatus::truncated;
      if (cut.result.status != data::ReadStatus::ok) continue;
      EXPECT_EQ(largest_difference(cut.image, whole.image), 0) << file.name << " at " << size;
    }
    EXPECT_GT(truncated * 2, file.bytes.size()) << file.name;
  }
}

/// The file's properties have turned it; `turned` is for what EXIF turns, which does not count
/// here.
TEST(ImageFiles, HeicAndAvifAreNotTurnedTwice) {
  for (const char* kind : {"heic", "avif"}) {
    for (const char* what : {" with EXIF and a turn", " with EXIF alone", " turned by 90"}) {
      const GoldenFile& file = image_file(std::string(kind) + what);
      if (!is_built(file)) GTEST_SKIP() << "no libheif in this build";
      const Decoded decoded = decode(file.bytes);
      EXPECT_EQ(decoded.orientation, 1) << file.name;
      EXPECT_FALSE(decoded.result.turned) << file.name;
    }
    const GoldenFile& alpha = image_file(std::string(kind) + " with alpha");
    EXPECT_TRUE(decode(alpha.bytes).stored.alpha);
    EXPECT_FALSE(decode(image_file(kind).bytes).stored.alpha);
  }
}

TEST(FilledMemory, IsNoticed) {
  constexpr std::size_t kBytes = 5000;
  const auto heap = [&] {
    const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(kBytes), std::free);
    return int{static_cast<volatile std::uint8_t*>(block.get())[kBytes / 2]};
  };
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(over_filled_memory(0x5A, heap), 0x5A);
  EXPECT_EQ(over_filled_memory(0xC3, heap), 0xC3);
#endif
}

TEST(FilledMemory, DoesNotShowInPixels) {
  for (const GoldenFile& file : image_files()) {
    const auto decoded = [&] { return decode(file.bytes); };
    const Decoded first = over_filled_memory(0x5A, decoded);
    const Decoded second = over_filled_memory(0xC3, decoded);
    EXPECT_EQ(first.result.status, second.result.status) << file.name;
    EXPECT_EQ(first.result.detail, second.result.detail) << file.name;
    EXPECT_EQ(first.image.rgb, second.image.rgb) << file.name;
  }
}

TEST(Libraries, AreNamedWithTheirVersion) {
  EXPECT_TRUE(png_library().starts_with("libpng 1."));
  EXPECT_TRUE(webp_library().empty() || webp_library().starts_with("libwebp 1."));
  EXPECT_TRUE(tiff_library().empty() || tiff_library().starts_with("libtiff 4."));
  EXPECT_TRUE(heif_library().empty() || heif_library().starts_with("libheif 1."));
}

}  // namespace
}  // namespace cputrain::datasets
