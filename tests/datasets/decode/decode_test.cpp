// Every format, and every way in which a file can be wrong.
#include "datasets/decode/decode.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/made_files.h"

namespace cputrain::datasets {
namespace {

using namespace std::string_view_literals;

/// Grey values below 128, as gif_of() wants them.
Image dark_grey_image(int width, int height) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(i * 7 % 128));
  }
  return image;
}

data::ReadStatus status_of(const Bytes& file) { return decode(file).result.status; }

TEST(Decode, ExactFormatsGiveThePixelsThatWereStored) {
  const Image image = smooth_image(37, 23);
  for (const Bytes& file : {png_of(image), bmp_of(image)}) {
    const Decoded decoded = decode(file);
    ASSERT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
    EXPECT_EQ(largest_difference(decoded.image, image), 0);
    EXPECT_FALSE(decoded.result.warned);
  }
  const Image grey = dark_grey_image(37, 23);
  const Decoded gif = decode(gif_of(grey));
  ASSERT_EQ(gif.result.status, data::ReadStatus::ok) << gif.result.detail;
  EXPECT_EQ(largest_difference(gif.image, grey), 0);
}

TEST(Decode, JpegIsNearWhatWasStored) {
  const Image image = smooth_image(61, 45);
  for (const JpegKind kind : {JpegKind::rgb, JpegKind::progressive}) {
    const Decoded decoded = decode(jpeg_of(image, kind));
    ASSERT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
    EXPECT_LE(largest_difference(decoded.image, image), 8);
    EXPECT_FALSE(decoded.result.warned);
  }
}

TEST(Decode, GreyJpegHasThreeEqualChannels) {
  const Image image = smooth_image(40, 30);
  const Decoded decoded = decode(jpeg_of(image, JpegKind::grey));
  ASSERT_EQ(decoded.result.status, data::ReadStatus::ok);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      EXPECT_NEAR(pixel(decoded.image, y, x, 0), pixel(image, y, x, 0), 4);
      EXPECT_EQ(pixel(decoded.image, y, x, 0), pixel(decoded.image, y, x, 1));
      EXPECT_EQ(pixel(decoded.image, y, x, 0), pixel(decoded.image, y, x, 2));
    }
  }
}

/// red = (1 - cyan)(1 - black) and so on, inks from 0 to 1; Adobe stores 255 for no ink.
TEST(Decode, InksBecomeRgb) {
  const Image image = smooth_image(48, 32);
  for (const JpegKind kind : {JpegKind::cmyk_adobe, JpegKind::ycck_adobe, JpegKind::cmyk_plain}) {
    const Decoded decoded = decode(jpeg_of(image, kind));
    ASSERT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
    const auto light = [&](int stored) {
      return kind == JpegKind::cmyk_plain ? 1 - stored / 255.0 : stored / 255.0;
    };
    for (int y = 0; y < 32; y += 5) {
      for (int x = 0; x < 48; x += 5) {
        for (int c = 0; c < 3; ++c) {
          EXPECT_NEAR(pixel(decoded.image, y, x, c),
                      255 * light(pixel(image, y, x, c)) * light(200), 8);
        }
      }
    }
  }
}

TEST(Decode, FormatIsWhatTheContentSays) {
  const Image image = smooth_image(5, 5);
  EXPECT_EQ(format_of(jpeg_of(image)), Format::jpeg);
  EXPECT_EQ(format_of(png_of(image)), Format::png);
  EXPECT_EQ(format_of(bmp_of(image)), Format::bmp);
  EXPECT_EQ(format_of(gif_of(dark_grey_image(5, 5))), Format::gif);
  EXPECT_EQ(format_of(bytes_of("RIFF\x10\0\0\0WEBPVP8 "sv)), Format::webp);
  EXPECT_EQ(format_of(bytes_of("RIFF\x10\0\0\0WAVEfmt "sv)), Format::unknown);
  for (const std::string_view tiff : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    EXPECT_EQ(format_of(bytes_of(tiff)), Format::tiff);
  }
  EXPECT_EQ(format_of(bytes_of("BMW is a maker of cars")), Format::unknown);
}

/// The first brand, or one of those that the file is compatible with.
TEST(Decode, BrandsTellHeicFromAvif) {
  const auto format = [](std::string_view brands) {
    const char length = static_cast<char>(8 + brands.size());
    return format_of(bytes_of(std::string(3, '\0') + length + "ftyp" + std::string(brands)));
  };
  EXPECT_EQ(format("heic\0\0\0\0mif1heic"sv), Format::heic);
  EXPECT_EQ(format("heix\0\0\0\0"sv), Format::heic);
  EXPECT_EQ(format("mif1\0\0\0\0mif1heic"sv), Format::heic);
  EXPECT_EQ(format("mif1\0\0\0\0mif1miafavif"sv), Format::avif);
  EXPECT_EQ(format("avif\0\0\0\0"sv), Format::avif);
  EXPECT_EQ(format("msf1\0\0\0\0"sv), Format::heic);
  EXPECT_EQ(format("isom\0\0\0\0isommp42"sv), Format::unknown);
  EXPECT_EQ(format("isomavif"sv), Format::unknown) << "four bytes are no brand";
  EXPECT_EQ(format("he"sv), Format::unknown);
}

TEST(Decode, WhatIsNoImageSaysSo) {
  EXPECT_EQ(status_of({}), data::ReadStatus::empty);
  EXPECT_EQ(status_of(bytes_of("not an image")), data::ReadStatus::not_an_image);
  EXPECT_EQ(status_of(Bytes(64, 0)), data::ReadStatus::not_an_image);
  for (const std::string_view foreign : {"\0\0\0\x1C"
                                         "ftypqt  \0\0\0\0"sv,
                                         "\0\0\0\x0CjP  \r\n\x87\n"sv, "\xFF\x0A\0\0"sv}) {
    EXPECT_EQ(status_of(bytes_of(foreign)), data::ReadStatus::unsupported);
  }
}

TEST(Decode, CutJpegIsTruncated) {
  for (const JpegKind kind : {JpegKind::rgb, JpegKind::progressive, JpegKind::grey}) {
    const Bytes file = jpeg_of(smooth_image(160, 120), kind);
    for (const std::size_t size : {std::size_t{3}, std::size_t{20}, std::size_t{300},
                                   file.size() / 2, file.size() * 9 / 10}) {
      EXPECT_EQ(status_of(prefix(file, size)), data::ReadStatus::truncated)
          << size << " of " << file.size();
    }
  }
}

TEST(Decode, JpegWithoutItsEndMarker) {
  const Image image = smooth_image(160, 120);
  const Bytes file = jpeg_of(image);
  const Decoded cut = decode(prefix(file, file.size() - 2));
  EXPECT_EQ(cut.result.status, data::ReadStatus::ok) << "no pixel is missing";
  EXPECT_TRUE(cut.result.warned);
  EXPECT_EQ(largest_difference(cut.image, decode(file).image), 0);
  const Bytes scans = jpeg_of(image, JpegKind::progressive);
  EXPECT_EQ(status_of(prefix(scans, scans.size() - 2)), data::ReadStatus::truncated)
      << "more scans could have followed";
}

TEST(Decode, ComplaintsOfLibjpegAreAcceptedAndMarked) {
  Bytes file = jpeg_of(smooth_image(32, 32));
  file.insert(file.end() - 2, {1, 2, 3, 4, 5, 6, 7, 8});  // extraneous bytes before the end marker
  const Decoded decoded = decode(file);
  EXPECT_EQ(decoded.result.status, data::ReadStatus::ok);
  EXPECT_TRUE(decoded.result.warned);
}

TEST(Decode, EveryPrefixOfTheOtherFormatsIsTruncated) {
  const Image image = smooth_image(9, 7), grey = dark_grey_image(9, 7);
  const Bytes png = png_of(image), bmp = bmp_of(image), gif = gif_of(grey);
  constexpr std::size_t kIend = 12, kPadding = 1;  // a row of 27 bytes takes 28
  for (std::size_t size = 8; size < png.size() - kIend; ++size) {
    EXPECT_EQ(status_of(prefix(png, size)), data::ReadStatus::truncated) << size;
  }
  for (std::size_t size = 18; size < bmp.size() - kPadding; ++size) {
    EXPECT_EQ(status_of(prefix(bmp, size)), data::ReadStatus::truncated) << size;
  }
  for (std::size_t size = 6; size < gif.size() - 1; ++size) {
    EXPECT_EQ(status_of(prefix(gif, size)), data::ReadStatus::truncated) << size;
  }
  EXPECT_EQ(status_of(prefix(gif, gif.size() - 1)), data::ReadStatus::ok)
      << "only the trailer is missing";
}

TEST(Decode, PngWithoutItsEnd) {
  const Image image = smooth_image(9, 7);
  const Bytes png = png_of(image);
  const std::size_t end = png.size() - 12;  // of IDAT
  for (std::size_t size = end; size < png.size(); ++size) {
    const Decoded cut = decode(prefix(png, size));
    EXPECT_EQ(cut.result.status, data::ReadStatus::ok)
        << "no pixel is missing: " << cut.result.detail;
    EXPECT_TRUE(cut.result.warned) << size;
    EXPECT_EQ(cut.image.rgb, image.rgb);
  }
  EXPECT_FALSE(decode(png).result.warned);
  // A wrong checksum of the pixels before, and one of the end itself.
  EXPECT_EQ(status_of(prefix(patched(png, end - 1, png[end - 1] ^ 1u, 1), end)),
            data::ReadStatus::not_an_image);
  EXPECT_EQ(status_of(patched(png, png.size() - 1, png.back() ^ 1u, 1)),
            data::ReadStatus::not_an_image);
}

/// What fills the last row of the file to a multiple of four bytes is no pixel.
TEST(Decode, BmpWithoutThePaddingOfItsLastRow) {
  for (const auto& [width, padding] : {std::pair{9, 1u}, {10, 2u}, {11, 3u}, {12, 0u}}) {
    const Image image = smooth_image(width, 7);
    const Bytes bmp = bmp_of(image);
    const Decoded cut = decode(prefix(bmp, bmp.size() - padding));
    EXPECT_EQ(cut.result.status, data::ReadStatus::ok) << width << cut.result.detail;
    EXPECT_EQ(cut.image.rgb, image.rgb) << width;
    EXPECT_EQ(status_of(prefix(bmp, bmp.size() - padding - 1)), data::ReadStatus::truncated)
        << width;
  }
  for (const char* name : {"bmp 1 bit", "bmp 4 bits", "bmp grey"}) {
    const GoldenFile& file = image_file(name);
    const auto width = static_cast<std::size_t>(file.image.width);
    const std::size_t row = (width * file.bytes[28] + 7) / 8;
    const std::size_t padding = (4 - row % 4) % 4;
    ASSERT_GT(padding, 0u) << name;
    const Decoded cut = decode(prefix(file.bytes, file.bytes.size() - padding));
    EXPECT_EQ(cut.image.rgb, file.image.rgb) << name;
    EXPECT_EQ(status_of(prefix(file.bytes, file.bytes.size() - padding - 1)),
              data::ReadStatus::truncated)
        << name;
  }
}

TEST(Decode, DamagedPngIsNoticed) {
  const Bytes png = png_of(smooth_image(9, 7));
  const std::size_t data = position_of(png, "IDAT") + 8;
  EXPECT_EQ(status_of(patched(png, data, png[data] ^ 1u, 1)), data::ReadStatus::not_an_image);
}

TEST(Decode, SizesBeyondTheLimitsAreRefusedBeforeDecoding) {
  const Image image = smooth_image(8, 8);
  const Bytes jpeg = jpeg_of(image), png = png_of(image), bmp = bmp_of(image),
              gif = gif_of(dark_grey_image(8, 8));
  const std::size_t frame = position_of(jpeg, "\xFF\xC0") + 5;
  // 16384 a side at most, and 89,478,485 pixels: 10000 x 10000 has too many.
  for (const std::uint32_t side : {20000u, 10000u}) {
    const std::uint32_t swapped = (side & 0xFF) << 8 | side >> 8;
    EXPECT_EQ(status_of(patched(jpeg, frame, side << 16 | side, 4)), data::ReadStatus::too_large);
    EXPECT_EQ(status_of(patched(gif, 6, swapped << 16 | swapped, 4)), data::ReadStatus::too_large);
    EXPECT_EQ(status_of(patched(patched(bmp, 18, swapped, 2), 22, swapped, 2)),
              data::ReadStatus::too_large);
    const Bytes sized = patched(patched(png, 16, side, 4), 20, side, 4);
    EXPECT_EQ(status_of(sized), data::ReadStatus::too_large);
    EXPECT_NE(decode(sized).result.detail.find(std::to_string(side)), std::string::npos);
  }
  EXPECT_EQ(status_of(patched(png, 16, 0xFFFFFFFF, 4)), data::ReadStatus::too_large);
  EXPECT_EQ(status_of(patched(jpeg, frame, 16385 << 16 | 1, 4)), data::ReadStatus::too_large);
}

TEST(Decode, APngThatInflatesBeyondItsSizeCostsOnlyItsSize) {
  // 64 MiB of zeros in 64 kB, in an image that says it is 8x8: black, and a complaint.
  z_stream stream{};
  deflateInit(&stream, 9);
  Bytes packed(std::size_t{1} << 20), zeros(std::size_t{1} << 20);
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  for (int megabyte = 0; megabyte < 64; ++megabyte) {
    stream.next_in = zeros.data();
    stream.avail_in = static_cast<uInt>(zeros.size());
    deflate(&stream, megabyte == 63 ? Z_FINISH : Z_NO_FLUSH);
  }
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const Bytes png = png_of(smooth_image(8, 8));
  const std::size_t chunk = position_of(png, "IDAT");
  Bytes bomb = prefix(png, chunk + 4);
  bomb.insert(bomb.end(), packed.begin(), packed.end());
  bomb = patched(bomb, chunk - 4, static_cast<std::uint32_t>(packed.size()), 4);
  const auto sum = crc32(0, bomb.data() + chunk, static_cast<uInt>(packed.size() + 4));
  bomb.resize(bomb.size() + 4);
  bomb = patched(bomb, bomb.size() - 4, static_cast<std::uint32_t>(sum), 4);
  bomb.insert(bomb.end(), png.end() - 12, png.end());
  const Decoded decoded = decode(bomb);
  EXPECT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
  EXPECT_TRUE(decoded.result.warned);
  EXPECT_EQ(decoded.image.rgb, Bytes(std::size_t{8} * 8 * 3));
}

}  // namespace
}  // namespace cputrain::datasets
