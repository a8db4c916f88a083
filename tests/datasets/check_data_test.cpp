#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "datasets/datasets.h"
#include "datasets/folders/published.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

std::size_t count(const data::CheckReport& report, data::ReadStatus status) {
  return report.by_status[static_cast<std::size_t>(status)];
}

class Check : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const Bytes& bytes) const { write_bytes(path(name), bytes); }
  const testing::TemporaryFolder folder_;
};

TEST_F(Check, CountsAndNamesEverything) {
  const auto image = [](int width) { return jpeg_of(smooth_image(width, 20)); };
  write("train/cat/1.jpg", image(21)), write("train/cat/2.jpg", image(22));
  write("train/cat/copy.jpg", image(21));
  write("train/dog/1.jpg", png_of(smooth_image(9, 9)));
  write("train/dog/zero.jpg", {}), write("train/dog/zero2.jpg", {});
  write("train/dog/text.jpg", bytes_of("text")), write("train/dog/Thumbs.db", bytes_of("x"));
  write("train/dog/cut.jpg", prefix(image(200), 300));
  write("val/dog/1.jpg", image(22)), write("val/dog/2.gif", bytes_of("more text"));
  Bytes odd = image(30);
  odd.insert(odd.end() - 2, {1, 2, 3, 4, 5});
  write("val/cat/odd.jpg", odd);

  const data::DataPipeline pipeline = make_data_pipeline();
  std::size_t last = 0;
  const data::DataSource source = pipeline.open({.spec = folder_.path().string()});
  const data::CheckReport report =
      pipeline.check(source, 2, [&](std::size_t done, std::size_t) { last = done; });
  EXPECT_EQ(last, 11u);
  EXPECT_EQ(report.samples, 11u);
  EXPECT_EQ(count(report, data::ReadStatus::ok), 6u);
  EXPECT_EQ(count(report, data::ReadStatus::empty), 2u);
  EXPECT_EQ(count(report, data::ReadStatus::not_an_image), 2u) << "text.jpg and 2.gif";
  EXPECT_EQ(count(report, data::ReadStatus::truncated), 1u);
  EXPECT_EQ(report.ignored, 1u);
  ASSERT_EQ(report.bad.size(), 5u);
  EXPECT_EQ(report.bad[0].name, path("train/dog/cut.jpg"));
  EXPECT_EQ(report.bad[0].result.status, data::ReadStatus::truncated);
  EXPECT_FALSE(report.bad[0].result.detail.empty());
  using Names = std::vector<std::string>;
  EXPECT_EQ(report.wrong_extension, Names{path("train/dog/1.jpg")});
  EXPECT_EQ(report.warned, Names{path("val/cat/odd.jpg")});
  EXPECT_EQ(report.duplicates,
            (std::vector<Names>{{path("train/cat/1.jpg"), path("train/cat/copy.jpg")},
                                {path("train/cat/2.jpg"), path("val/dog/1.jpg")}}));
  EXPECT_EQ(report.leaks, (std::vector<Names>{{path("train/cat/2.jpg"), path("val/dog/1.jpg")}}));
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[0].name, "cat");
  EXPECT_EQ(report.classes[0].train, 3u);
  EXPECT_EQ(report.classes[0].validation, 1u);
  EXPECT_EQ(report.classes[1].train, 5u);
  EXPECT_EQ(report.classes[1].validation, 2u);
}

TEST_F(Check, LabelsPartsAndFilesThatAreNotRead) {
  const auto image = [](int width) { return png_of(smooth_image(width, 20)); };
  write("train/cat/1.png", image(21)), write("train/cat/2.png", image(22));
  write("train/dog/1.png", image(23)), write("train/dog/copy.png", image(21));
  write("val/cat/1.png", image(24)), write("test/dog/1.png", image(22));
  write("train/cow/1.jpg", bytes_of("x")), write("train/emu/1.svg", bytes_of("x"));
  write("train/dog/.3.png", image(25)), write("test1/1.png", image(26));
  std::filesystem::create_symlink("nowhere", path("train/dog/4.png"));

  const data::DataPipeline pipeline = make_data_pipeline();
  const data::CheckReport report = pipeline.check(
      pipeline.open(
          {.spec = folder_.path().string(), .allow_empty_classes = true, .list_unread = true}),
      1, {});
  EXPECT_EQ(report.samples, 7u) << "the test part is looked at, too";
  using Names = std::vector<std::string>;
  EXPECT_EQ(report.conflicts,
            (std::vector<Names>{
                {path("train/cat/1.png") + " (cat)", path("train/dog/copy.png") + " (dog)"},
                {path("train/cat/2.png") + " (cat)", path("test/dog/1.png") + " (dog)"}}));
  EXPECT_EQ(report.test_leaks,
            (std::vector<Names>{{path("train/cat/2.png"), path("test/dog/1.png")}}));
  EXPECT_TRUE(report.leaks.empty());
  Names unread;
  for (const data::UnreadFile& file : report.unread) {
    unread.push_back(file.path + ": " + std::string(file.reason->one));
  }
  std::ranges::sort(unread);
  EXPECT_EQ(unread, (Names{"test1/1.png: in a folder that is not used", "train/dog/.3.png: hidden",
                           "train/dog/4.png: broken link", "train/emu/1.svg: SVG"}));
  EXPECT_EQ(report.ignored, 4u);
  Names empty = report.empty_classes;
  std::ranges::sort(empty);
  EXPECT_EQ(empty, (Names{"cow", "emu"})) << "cow's image cannot be decoded";
  ASSERT_EQ(report.classes.size(), 4u);
  EXPECT_EQ(report.classes[2].name, "dog");
  EXPECT_EQ(report.classes[2].train, 2u);
  EXPECT_EQ(report.classes[2].test, 1u);
}

TEST_F(Check, MadeImagesAreAllRightAndAllDifferent) {
  const data::DataPipeline pipeline = make_data_pipeline();
  const data::CheckReport report = pipeline.check(pipeline.open({.spec = "synthetic:200"}), 1, {});
  EXPECT_EQ(count(report, data::ReadStatus::ok), 200u);
  EXPECT_TRUE(report.duplicates.empty());
}

/// MD5 of md5sum; the sizes are those of the formats.
TEST_F(Check, FilesOfKnownSetsAreComparedWithWhatWasPublished) {
  const std::string all = folder_.path().string();
  write("data_batch_1.bin", Bytes(3073 * 10'000, 1));
  write("test_batch.bin", Bytes(3073 * 3, 2));
  const data::DataPipeline pipeline = make_data_pipeline();
  const auto known =
      pipeline.check(pipeline.open({.spec = "cifar10:" + all, .limit_train = 20}), 1, {}).known;
  ASSERT_EQ(known.size(), 2u);
  EXPECT_TRUE(known[0].as_published);
  EXPECT_FALSE(known[1].as_published);
  EXPECT_NE(known[1].verdict.find("9,219 bytes instead of 30,730,000"), std::string::npos);
  write("train-images-idx3-ubyte", idx_of({2, 1, 1}, {1, 2}));
  write("train-labels-idx1-ubyte.gz", gzip_of(idx_of({2}, {0, 1})));
  const auto idx = pipeline.check(pipeline.open({.spec = "idx:" + all}), 1, {}).known;
  ASSERT_EQ(idx.size(), 2u);
  EXPECT_NE(idx[0].verdict.find("MNIST or Fashion-MNIST (18 bytes"), std::string::npos);
  EXPECT_NE(idx[1].verdict.find("MNIST or Fashion-MNIST (MD5 "), std::string::npos);
  const std::string made = path("t10k-labels-idx1-ubyte.gz");
  write_bytes(made, bytes_of("abc"));  // RFC 1321, A.5
  EXPECT_NE(compare_with_published(made)->verdict.find("900150983cd24fb0d6963f7d28e17f72"),
            std::string::npos);
  EXPECT_FALSE(compare_with_published(path("none")));
}

TEST(DataLibraries, AreNamed) {
  const auto names = data_libraries();
  EXPECT_GE(names.size(), 4u);  // libwebp, libtiff and libheif may be left out
  EXPECT_TRUE(names[0].starts_with("libjpeg"));
}

}  // namespace
}  // namespace cputrain::datasets
