// Images that show little once they are read: which, why, and when that is said.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/communicator.h"
#include "datasets/datasets.h"
#include "datasets/decode/decoders.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_data.h"

namespace cputrain::datasets {
namespace {

constexpr Shape kImage{6, 6, 3};

struct FlawedFile {
  std::string name, flaw;
  Bytes bytes;
};

/// Those that this build reads.
std::vector<FlawedFile> flawed_files() {
  std::vector<FlawedFile> files;
  for (const auto& entry :
       nlohmann::json::parse(testing::test_data("datasets/flawed_files.json"))) {
    const std::string hex = entry.at("file"), name = entry.at("name");
    if (name.starts_with("webp") && webp_library().empty()) continue;
    if (name.starts_with("tiff") && tiff_library().empty()) continue;
    FlawedFile file{name, entry.at("flaw"), {}};
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      file.bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    files.push_back(std::move(file));
  }
  return files;
}

TEST(Flaws, OfEveryFormatAndKindOfPixel) {
  for (const FlawedFile& file : flawed_files()) {
    const Decoded decoded = decode(file.bytes);
    ASSERT_EQ(decoded.result.status, data::ReadStatus::ok) << file.name;
    const data::Flaw flaw =
        data::flaw_of(decoded.result, decoded.image.rgb, data::Exif::apply, decoded.stored);
    EXPECT_EQ(word_of(flaw), file.flaw) << file.name;
  }
}

TEST(Flaws, OfTurnedImagesAndOfThoseThatCannotBeRead) {
  const Image image = smooth_image(6, 6);
  data::ReadResult turned, bad;
  turned.turned = true;
  bad.status = data::ReadStatus::truncated;
  EXPECT_EQ(data::flaw_of(turned, image.rgb, data::Exif::apply), data::Flaw::none);
  EXPECT_EQ(data::flaw_of(turned, image.rgb, data::Exif::ignore), data::Flaw::unturned);
  const Bytes black(image.rgb.size());
  EXPECT_EQ(data::flaw_of(turned, black, data::Exif::ignore), data::Flaw::one_colour);
  EXPECT_EQ(data::flaw_of(bad, black, data::Exif::ignore), data::Flaw::none);
  for (int flaw = 1; flaw <= static_cast<int>(data::Flaw::unturned); ++flaw) {
    EXPECT_FALSE(data::flaw_remedy(static_cast<data::Flaw>(flaw)).empty()) << flaw;
  }
}

/// Class `cat` is as it should be; of `dog` so many are black, or turned.
class FlawedData : public ::testing::Test {
 protected:
  void make(int good, int black, int turned) {
    for (int i = 0; i < 20; ++i) write("cat", i, png_of(smooth_image(7 + i, 6)));
    int number = 0;
    for (int i = 0; i < good; ++i) write("dog", number++, png_of(smooth_image(6, 7 + i)));
    const Image dark{6, 6, Bytes(kImage.size())};
    for (int i = 0; i < black; ++i) write("dog", number++, bmp_of(dark));
    for (int i = 0; i < turned; ++i)
      write("dog", number++, with_orientation(jpeg_of(smooth_image(9 + i, 6)), 6));
  }
  void write(const std::string& label, int number, const Bytes& bytes) {
    write_bytes(folder_.path() / "d" / label / (std::to_string(100 + number) + ".png"), bytes);
  }
  data::DataSource open(data::Exif exif, data::Expand expand = data::Expand::none) const {
    return pipeline_.open(
        {.spec = (folder_.path() / "d").string(), .expand = expand, .exif = exif});
  }
  std::vector<std::string> warnings(const data::DataSource& source) const {
    const auto comm = comm::make_solo();
    return pipeline_.decode(source, {kImage, 1, {}}, comm->node_memory()).flaws;
  }
  static void expect_words(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
    }
  }

  testing::TemporaryFolder folder_;
  data::DataPipeline pipeline_ = make_data_pipeline();
};

TEST_F(FlawedData, IsSaidInTrainingFromATenthOfAClassOn) {
  make(18, 2, 0);
  const auto said = warnings(open(data::Exif::apply));
  ASSERT_EQ(said.size(), 1u);
  expect_words(said[0],
               {"2 of 20 images of class 'dog' are of one colour", "118.png", "data check"});
  EXPECT_EQ(warnings(open(data::Exif::apply, data::Expand::six)), said) << "an image counts once";
}

TEST_F(FlawedData, IsNotSaidOfFewer) {
  make(19, 1, 1);
  EXPECT_TRUE(warnings(open(data::Exif::apply)).empty());
  EXPECT_TRUE(warnings(open(data::Exif::ignore)).empty());
}

TEST_F(FlawedData, TurnedImagesAreSaidWhereTheyAreReadAsTheyLie) {
  make(9, 0, 5);
  EXPECT_TRUE(warnings(open(data::Exif::apply)).empty());
  const auto said = warnings(open(data::Exif::ignore));
  ASSERT_EQ(said.size(), 1u);
  expect_words(said[0], {"5 of 14 images of class 'dog'", "--exif apply"});
}

TEST_F(FlawedData, IsCountedByACheckHoweverFew) {
  make(15, 3, 4);
  const data::CheckReport report = pipeline_.check(open(data::Exif::ignore), 1, {});
  EXPECT_EQ(report.turned, 4u);
  ASSERT_EQ(report.flaws.size(), 2u);
  EXPECT_EQ(report.flaws[0].flaw, data::Flaw::one_colour);
  EXPECT_EQ(report.flaws[0].label, "dog");
  EXPECT_EQ(report.flaws[0].images, 3u);
  EXPECT_EQ(report.flaws[0].of, 22u);
  EXPECT_EQ(report.flaws[0].examples.size(), 3u);
  EXPECT_EQ(report.flaws[1].flaw, data::Flaw::unturned);
  EXPECT_EQ(report.flaws[1].images, 4u);
  const data::CheckReport upright = pipeline_.check(open(data::Exif::apply), 1, {});
  EXPECT_EQ(upright.turned, 4u);
  EXPECT_EQ(upright.flaws.size(), 1u);
}

TEST_F(FlawedData, IsCountedInFilesOfManyImages) {
  Bytes records;
  for (int i = 0; i < 20; ++i) {
    records.push_back(static_cast<std::uint8_t>(i % 10));
    for (int k = 0; k < 3072; ++k) {
      records.push_back(static_cast<std::uint8_t>(i % 10 == 3 ? 90 : k % 251));
    }
  }
  write_bytes(folder_.path() / "c/data_batch_1.bin", records);
  Bytes digits(20 * 16);
  for (std::size_t i = 16 * 10; i < digits.size(); ++i)
    digits[i] = static_cast<std::uint8_t>(i | 128);
  Bytes labels(20);
  std::fill_n(labels.begin(), 10, std::uint8_t{1});
  write_bytes(folder_.path() / "m/train-images-idx3-ubyte", idx_of({20, 4, 4}, digits));
  write_bytes(folder_.path() / "m/train-labels-idx1-ubyte", idx_of({20}, labels));
  for (const auto& [spec, label, images] :
       {std::tuple("cifar10:" + (folder_.path() / "c").string(), "cat", 2u),
        std::tuple("idx:" + (folder_.path() / "m").string(), "1", 10u)}) {
    const auto rows = pipeline_.check(pipeline_.open({.spec = spec}), 1, {}).flaws;
    ASSERT_EQ(rows.size(), 1u) << spec;
    EXPECT_EQ(rows[0].flaw, data::Flaw::one_colour);
    EXPECT_EQ(rows[0].label, label);
    EXPECT_EQ(rows[0].images, images);
  }
}

TEST_F(FlawedData, IsSaidOfPackedImagesAndWhenTheyArePacked) {
  make(10, 10, 4);
  const std::string file = (folder_.path() / "p.ctpack").string();
  const auto packed =
      pipeline_.pack(open(data::Exif::ignore), file, {kImage, 1, {}, data::Resize::bilinear});
  ASSERT_EQ(packed.flaws.size(), 2u);
  expect_words(packed.flaws[0], {"10 of 24 images of class 'dog'", "one colour"});
  expect_words(packed.flaws[1], {"4 of 24 images of class 'dog'", "--exif apply"});
  const auto said = warnings(pipeline_.open({.spec = file, .exif = data::Exif::ignore}));
  ASSERT_EQ(said.size(), 1u) << "that images were turned is no longer known";
  EXPECT_EQ(said[0].substr(0, 20), packed.flaws[0].substr(0, 20));
}

}  // namespace
}  // namespace cputrain::datasets
