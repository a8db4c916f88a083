// Damaged files must give a result, whatever it is: no crash, no report under sanitizers, and the
// same pixels whatever memory held before.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.h"
#include "core/random/random.h"
#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "datasets/formats/packed.h"
#include "datasets/open.h"
#include "tests/datasets/decode/filled_memory.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

constexpr std::uint32_t kCases = 1'500;  // of each file
constexpr std::uint32_t kPackedKind = 10;

/// Changes one to eight bytes, and sometimes cuts the end; f(file, number).
Bytes mutated(Bytes file, std::uint32_t kind, std::uint32_t number) {
  const RandomStream stream(1, Purpose::noise, kind, number);
  const auto head = stream.at(0);
  const auto size = static_cast<std::uint32_t>(file.size());
  for (std::uint32_t i = 0; i <= head[0] % 8; ++i) {
    const auto words = stream.at(1 + i);
    // Headers are short and decide much: half of the changes are there.
    const std::uint32_t reach = words[3] % 2 == 0 ? std::min(size, 200u) : size;
    auto& byte = file[below(words[0], reach)];
    constexpr std::array<std::uint8_t, 4> kEdges{0, 0xFF, 0x7F, 0x80};
    byte = words[1] % 3 == 0 ? kEdges[words[2] % 4] : static_cast<std::uint8_t>(words[2]);
  }
  if (head[1] % 4 == 0) file.resize(1 + below(head[2], size));
  return file;
}

using Repair = Bytes (*)(const Bytes&);

Bytes unchanged(const Bytes& file) { return file; }

void decode_mutations(const Bytes& file, std::uint32_t kind, Repair repair = unchanged,
                      std::uint32_t cases = kCases) {
  std::size_t decoded_well = 0;
  for (std::uint32_t number = 0; number < cases; ++number) {
    const Bytes odd = repair(mutated(file, kind, number));
    const auto work = [&] { return decode(odd); };
    const Decoded decoded = over_filled_memory(0x5A, work), again = over_filled_memory(0xC3, work);
    ASSERT_EQ(decoded.result.status, again.result.status) << number;
    ASSERT_EQ(decoded.result.detail, again.result.detail) << number;
    ASSERT_TRUE(decoded.image.rgb == again.image.rgb) << number;
    if (decoded.result.status != data::ReadStatus::ok) {
      EXPECT_FALSE(decoded.result.detail.empty()) << number;
      continue;
    }
    ++decoded_well;
    ASSERT_GE(decoded.orientation, 1);
    ASSERT_LE(decoded.orientation, 8);
    const Image& image = decoded.image;
    ASSERT_GE(image.width, 1);
    ASSERT_GE(image.height, 1);
    ASSERT_FALSE(exceeds_limits(image.width, image.height));
    ASSERT_EQ(image.rgb.size(),
              static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  }
  EXPECT_GT(decoded_well, 0u);
  EXPECT_LT(decoded_well, cases);
}

/// Dark, so that a GIF can hold it.
Image small_image() {
  Image image{24, 18, {}};
  for (int i = 0; i < 24 * 18; ++i) {
    image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(i * 5 % 120));
  }
  return image;
}

TEST(Mutation, Jpeg) { decode_mutations(jpeg_of(small_image()), 0); }
TEST(Mutation, TurnedJpeg) { decode_mutations(with_orientation(jpeg_of(small_image()), 6), 28); }
TEST(Mutation, ProgressiveJpeg) {
  decode_mutations(jpeg_of(small_image(), JpegKind::progressive), 1);
}
TEST(Mutation, Inks) { decode_mutations(jpeg_of(small_image(), JpegKind::ycck_adobe), 2); }
TEST(Mutation, Png) { decode_mutations(png_of(small_image()), 3); }
TEST(Mutation, Bmp) { decode_mutations(bmp_of(small_image()), 4); }
TEST(Mutation, Gif) { decode_mutations(gif_of(small_image()), 5); }

/// A file of image_files.json, and the first number of its stream.
struct StoredFile {
  const char* test;
  const char* name;
  std::uint32_t kind;
  Repair repair = unchanged;
};

class StoredMutation : public ::testing::TestWithParam<StoredFile> {};

TEST_P(StoredMutation, Decodes) {
  const GoldenFile& file = image_file(GetParam().name);
  if (!is_built(file)) GTEST_SKIP() << "this build does not read it";
  decode_mutations(file.bytes, GetParam().kind, GetParam().repair);
}

INSTANTIATE_TEST_SUITE_P(
    Files, StoredMutation,
    ::testing::Values(
        StoredFile{"PngInterlacedPalette", "png interlaced palette", 11, with_png_checksums},
        StoredFile{"Png16Bits", "png 16 bits", 12, with_png_checksums},
        StoredFile{"BmpPalette", "bmp 4 bits", 13},
        StoredFile{"BmpMasks", "bmp 16 bits with masks in its header", 14},
        StoredFile{"GifInterlaced", "gif interlaced", 15},
        StoredFile{"GifOfAPart", "gif of a part of its screen", 16}, StoredFile{"Webp", "webp", 17},
        StoredFile{"WebpLossless", "webp lossless", 18},
        StoredFile{"WebpAnimated", "webp animated, first frame smaller", 19},
        StoredFile{"Tiff", "tiff by hand", 20}, StoredFile{"TiffLzw", "tiff tiff_lzw", 21},
        StoredFile{"TiffTiles", "tiff in tiles", 22}, StoredFile{"TiffPalette", "tiff palette", 23},
        StoredFile{"TiffGroup4", "tiff group4", 24}, StoredFile{"TiffJpeg", "tiff jpeg", 25},
        StoredFile{"TiffInks", "tiff inks", 26}, StoredFile{"TiffOf64Bits", "tiff of 64 bits", 27}),
    [](const auto& instance) { return instance.param.test; });

/// Every other way in which TIFF and WebP store pixels; fewer cases of each.
TEST(Mutation, OtherTiffAndWebp) {
  constexpr std::uint32_t kFirstKind = 100, kFew = 200;
  std::uint32_t kind = kFirstKind;
  for (const char* name :
       {"tiff tiff_adobe_deflate", "tiff packbits", "tiff g3:1d:fill", "tiff g3:2d in tiles",
        "tiff tiff_ccitt", "tiff of JPEG in tiles", "tiff of JPEG in planes and tiles",
        "tiff of JPEG of grey in tiles", "tiff of JPEG in inks", "tiff of a JPEG, progressive",
        "tiff of 16 bits", "tiff of subsampled colours", "tiff in planes", "webp with alpha",
        "webp lossless of noise", "webp, larger"}) {
    const GoldenFile& file = image_file(name);
    if (is_built(file)) decode_mutations(file.bytes, kind, unchanged, kFew);
    ++kind;
  }
}

/// Each case makes a decoder of its own: fewer of each file.
TEST(Mutation, HeicAndAvif) {
  constexpr std::uint32_t kFirstKind = 200, kFew = 400;
  std::uint32_t kind = kFirstKind;
  for (const char* name : {"heic", "heic in tiles", "heic with alpha", "heic turned and mirrored",
                           "heic, larger", "heic of 10 bits", "avif", "avif in tiles",
                           "avif with alpha", "avif of 12 bits", "avif grey"}) {
    const GoldenFile& file = image_file(name);
    if (!is_built(file)) GTEST_SKIP() << "no libheif in this build";
    decode_mutations(file.bytes, kind++, unchanged, kFew);
  }
}

/// A wrong checksum ends most of the cases of `png` early; here all are set right again.
TEST(Mutation, PngWithRightChecksums) {
  decode_mutations(png_of(small_image()), 6, with_png_checksums);
}

/// Opens mutations of a file as a data set: refused with Error(data), or a data set that can be
/// read and checked. `write` puts a mutation in its place.
void open_mutations(const std::string& spec, const Bytes& file, std::uint32_t kind,
                    const std::function<void(const Bytes&)>& write, Repair repair = unchanged) {
  std::size_t opened = 0;
  constexpr std::uint32_t kFiles = 5000;
  for (std::uint32_t number = 0; number < kFiles; ++number) {
    write(repair(mutated(file, kind, number)));
    try {
      const data::DataSource source = open_data({.spec = spec, .validation_split = 0});
      const Shape image = source.dataset->ready_form().value_or(data::ReadyForm{{8, 8, 3}}).image;
      Bytes pixels(image.size());
      for (const std::uint32_t sample : source.train) {
        ASSERT_GE(source.dataset->label(sample), 0);
        ASSERT_LT(static_cast<std::size_t>(source.dataset->label(sample)),
                  source.dataset->classes().size());
        EXPECT_FALSE(source.dataset->name(sample).empty() && kind != kPackedKind);
        source.dataset->read(sample, image, data::Resize::bilinear, pixels);
      }
      ++opened;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
    }
  }
  EXPECT_GT(opened, 0u);
  EXPECT_LT(opened, kFiles);
}

TEST(Mutation, Annotations) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "a.json").string();
  const Bytes json = bytes_of(
      R"({"images":[{"id":1,"file_name":"a/1.jpg"},{"id":2,"file_name":"a/2.jpg","x":[{"y":[]}]}],)"
      R"("categories":[{"id":3,"name":"b","supercategory":"c"},{"id":4,"name":"d"}],)"
      R"("annotations":[{"id":1,"image_id":1,"category_id":3},{"image_id":2,"category_id":4}]})");
  open_mutations("coco:" + path, json, 7, [&](const Bytes& bytes) { write_bytes(path, bytes); });
}

TEST(Mutation, Cifar) {
  const testing::TemporaryFolder folder;
  const Bytes file(std::size_t{2} * 3073, 5);
  open_mutations("cifar10:" + folder.path().string(), file, 8, [&](const Bytes& bytes) {
    write_bytes(folder.path() / "data_batch_2.bin", bytes);
  });
}

TEST(Mutation, CifarClassNames) {
  const testing::TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", Bytes(3073, 5));
  open_mutations(
      "cifar10:" + folder.path().string(), bytes_of("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"), 9,
      [&](const Bytes& bytes) { write_bytes(folder.path() / "batches.meta.txt", bytes); });
}

/// The checksum is set right again, so that the checks behind it are met.
TEST(Mutation, Packed) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "p.ctpack").string();
  write_packed(open_data({.spec = "synthetic:6"}), path,
               {{4, 4, 3}, 1, {}, data::Resize::bilinear});
  std::ifstream stream(path, std::ios::binary);
  const Bytes file{std::istreambuf_iterator<char>(stream), {}};
  open_mutations(
      path, file, kPackedKind, [&](const Bytes& bytes) { write_bytes(path, bytes); },
      with_packed_checksum);
}

}  // namespace
}  // namespace cputrain::datasets
