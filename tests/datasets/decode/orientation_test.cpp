// EXIF orientation in every format that has one, against Pillow (orientations.json), and data that
// make no sense.
#include "datasets/decode/orientation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "datasets/pixels/resize.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/made_files.h"
#include "tests/support/test_data.h"

namespace cputrain::datasets {
namespace {

using namespace std::string_view_literals;

struct Turned {
  GoldenFile file;  ///< with the image as it is shown
  int orientation;
};

std::vector<Turned> turned_files() {
  std::vector<Turned> files;
  for (const auto& entry :
       nlohmann::json::parse(testing::test_data("datasets/decode/orientations.json"))) {
    Bytes bytes;
    const std::string hex = entry.at("file");
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    files.push_back({{.name = entry.at("name"),
                      .bytes = std::move(bytes),
                      .status = "ok",
                      .strict = "ok",
                      .image = {entry.at("width"), entry.at("height"), entry.at("pixels")}},
                     entry.at("orientation")});
  }
  return files;
}

Image copy_of(const PixelView& view) {
  Image image{view.width, view.height, {}};
  const Shape size{view.height, view.width, 3};
  image.rgb.resize(size.size());
  resize_image(view, size, data::Resize::bilinear_plain, image.rgb);
  return image;
}

std::vector<std::uint8_t> resized(const PixelView& view, Shape size, data::Resize how) {
  std::vector<std::uint8_t> bytes(size.size());
  resize_image(view, size, how, bytes);
  return bytes;
}

TEST(Orientation, IsWhatPillowTurns) {
  constexpr std::array<std::uint8_t, 3> kFirstStored{10, 20, 0};
  int formats[9] = {};
  for (const Turned& one : turned_files()) {
    if (!is_built(one.file)) continue;
    const Decoded decoded = decode(one.file.bytes);
    ASSERT_EQ(decoded.result.status, data::ReadStatus::ok) << one.file.name;
    EXPECT_EQ(decoded.orientation, one.orientation) << one.file.name;
    EXPECT_EQ(decoded.result.turned, one.orientation != 1) << one.file.name;
    const Image image = copy_of(shown(decoded, data::Exif::apply));
    EXPECT_EQ(image.width, one.file.image.width) << one.file.name;
    ASSERT_EQ(image.rgb.size(), one.file.image.rgb.size()) << one.file.name;
    for (std::size_t i = 0; i < image.rgb.size(); ++i) {  // of a JPEG another libjpeg may round
      EXPECT_NEAR(image.rgb[i], one.file.image.rgb[i], 1) << one.file.name << " at " << i;
    }
    const Image as_stored = copy_of(shown(decoded, data::Exif::ignore));
    EXPECT_EQ(as_stored.width, 5) << one.file.name;
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(as_stored.rgb[static_cast<std::size_t>(c)], kFirstStored[c], 4) << one.file.name;
    }
    ++formats[one.orientation];
  }
  for (int orientation = 1; orientation <= 8; ++orientation) EXPECT_GE(formats[orientation], 2);
}

/// Turning costs nothing and changes nothing: the size that is asked for is that of the turned
/// image.
TEST(Orientation, AViewIsResizedAsACopyThatWasTurned) {
  const Image image = smooth_image(9, 6);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const PixelView view(image, orientation);
    const Image copy = copy_of(view);
    EXPECT_EQ(copy.width, orientation < 5 ? 9 : 6);
    for (const Shape size : {Shape{6, 9, 3}, Shape{9, 6, 3}, Shape{4, 4, 3}, Shape{13, 7, 3}}) {
      for (const data::Resize how :
           {data::Resize::area, data::Resize::bilinear, data::Resize::bicubic,
            data::Resize::nearest, data::Resize::bilinear_plain}) {
        EXPECT_EQ(resized(view, size, how), resized(copy, size, how)) << orientation;
      }
    }
  }
}

/// EXIF data of one tag: its directory at 8, then count, tag, type, number of values, value.
std::string exif_of(bool little, int tag, int type, int values, int value, int directory = 8,
                    int entries = 1) {
  std::string text(little ? "II" : "MM");
  const auto put = [&](int number, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(number >> 8 * (little ? i : bytes - 1 - i) & 0xFF);
    }
  };
  put(42, 2), put(directory, 4), put(entries, 2);
  put(tag, 2), put(type, 2), put(values, 4);
  put(value, type == 3 ? 2 : 4);
  if (type == 3) put(0, 2);
  put(0, 4);
  return text;
}

std::string plain_exif(int orientation) { return exif_of(true, 274, 3, 1, orientation); }

std::string app1(const std::string& data) {
  const std::size_t length = data.size() + 2;
  return std::string("\xFF\xE1") + static_cast<char>(length >> 8) +
         static_cast<char>(length & 0xFF) + data;
}

std::string exif_app1(const std::string& exif) { return app1(std::string("Exif\0\0"sv) + exif); }

int of_jpeg(const std::string& segments) {
  return orientation_of(Format::jpeg, bytes_of("\xFF\xD8" + segments));
}

int of_tiff(const std::string& tiff) { return orientation_of(Format::tiff, bytes_of(tiff)); }

TEST(Orientation, IsOneWhereTheTagMakesNoSense) {
  EXPECT_EQ(of_tiff(plain_exif(6)), 6);
  EXPECT_EQ(of_tiff(exif_of(false, 274, 3, 1, 6)), 6);
  EXPECT_EQ(of_tiff(exif_of(false, 274, 4, 1, 8)), 8) << "a long number is one, too";
  for (const int wrong : {0, 9, 6 << 8, 65535}) EXPECT_EQ(of_tiff(plain_exif(wrong)), 1) << wrong;
  EXPECT_EQ(of_tiff(exif_of(true, 275, 3, 1, 6)), 1) << "another tag";
  EXPECT_EQ(of_tiff(exif_of(true, 274, 2, 1, 6)), 1) << "a text";
  EXPECT_EQ(of_tiff(exif_of(true, 274, 3, 2, 6)), 1) << "two values";
  EXPECT_EQ(of_tiff(exif_of(true, 274, 3, 1, 6, 8, 65535)), 6) << "more entries than there are";
  EXPECT_EQ(of_tiff(exif_of(true, 274, 3, 1, 6, 8, 0)), 1);
  for (const int place : {0, 4, 25, 26, 1000, -1, -8, 0x7FFFFFFF}) {
    EXPECT_EQ(of_tiff(exif_of(true, 274, 3, 1, 6, place)), 1) << "directory at " << place;
  }
  EXPECT_EQ(of_tiff("JJ" + plain_exif(6).substr(2)), 1);
  const std::string whole = plain_exif(6);
  for (std::size_t size = 0; size < whole.size() - 4; ++size) {
    EXPECT_EQ(of_tiff(whole.substr(0, size)), 1) << "cut at " << size;
  }
}

TEST(Orientation, OfABigTiff) {
  std::string tiff("II\x2B\0\x08\0\0\0\x10\0\0\0\0\0\0\0"sv);
  tiff += "\x01\0\0\0\0\0\0\0"sv;
  tiff += "\x12\x01\x03\0\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0"sv;
  EXPECT_EQ(of_tiff(tiff), 7);
  EXPECT_EQ(of_tiff(tiff.substr(0, tiff.size() - 1)), 1);
}

TEST(Orientation, OfAJpegIsThatOfItsFirstExifSegment) {
  const std::string exif = exif_app1(plain_exif(6)), scan = "\xFF\xDA";
  EXPECT_EQ(of_jpeg(exif), 6);
  EXPECT_EQ(of_jpeg(app1("http://ns.adobe.com/xap/1.0/") + exif + exif_app1(plain_exif(3))), 6);
  EXPECT_EQ(of_jpeg("\xFF\xFF" + exif), 6) << "fill bytes";
  EXPECT_EQ(of_jpeg(scan + exif), 1) << "behind the first scan";
  EXPECT_EQ(of_jpeg(app1("Exif")), 1);
  EXPECT_EQ(of_jpeg(exif_app1("")), 1);
  EXPECT_EQ(of_jpeg(std::string("\xFF\xE1\0\0"sv) + exif), 1) << "a length of 0";
  EXPECT_EQ(of_jpeg("\xFF\xE1\xFF\xFF" + exif), 1) << "a length behind the end";
  EXPECT_EQ(of_jpeg(""), 1);
}

TEST(Orientation, OfChunksWhereverTheyLie) {
  const Bytes png = png_of(smooth_image(4, 3));
  const std::string exif = plain_exif(5);
  std::string chunk = std::string("\0\0\0"sv) + static_cast<char>(exif.size()) + "eXIf" + exif +
                      std::string(4, '\0');
  Bytes behind = png;
  const Bytes bytes = bytes_of(chunk);
  behind.insert(behind.end() - 12, bytes.begin(), bytes.end());  // before IEND
  const Decoded decoded = decode(with_png_checksums(behind));
  EXPECT_EQ(decoded.result.status, data::ReadStatus::ok) << decoded.result.detail;
  EXPECT_EQ(decoded.orientation, 5);
  chunk[0] = '\xFF';  // longer than any file
  EXPECT_EQ(orientation_of(Format::png, bytes_of("\x89PNG\r\n\x1A\n" + chunk)), 1);

  const auto webp = [&](const std::string& data) {
    return bytes_of(std::string("RIFF\0\0\0\0WEBPXMP \x03\0\0\0abc\0EXIF"sv) +
                    static_cast<char>(data.size()) + std::string(3, '\0') + data);
  };
  EXPECT_EQ(orientation_of(Format::webp, webp(exif)), 5);
  EXPECT_EQ(orientation_of(Format::webp, webp(std::string("Exif\0\0"sv) + exif)), 5);
  EXPECT_EQ(orientation_of(Format::webp, prefix(webp(exif), 40)), 1);
  EXPECT_EQ(orientation_of(Format::bmp, bytes_of(exif)), 1);
}

}  // namespace
}  // namespace cputrain::datasets
