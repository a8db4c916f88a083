#include "datasets/formats/idx.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "datasets/formats/idx_file.h"
#include "datasets/open.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

/// Four training images and two test images of 3x2.
class Idx : public ::testing::Test {
 protected:
  Idx() {
    Bytes pixels;
    for (int i = 0; i < 24; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 10));
    images_ = idx_of({4, 3, 2}, pixels);
    labels_ = idx_of({4}, {2, 0, 1, 2});
    write(kTrainImages, images_);
    write(kTrainLabels, labels_);
    write(kTestImages, idx_of({2, 3, 2}, Bytes(12, 9)));
    write(kTestLabels, idx_of({2}, {1, 0}));
  }
  void write(const std::string& name, const Bytes& bytes) {
    write_bytes(folder_.path() / name, bytes);
  }
  void remove(const std::string& name) { std::filesystem::remove(folder_.path() / name); }
  std::string path() const { return folder_.path().string(); }
  std::string error() const {
    return testing::refused(ExitCode::data, [&] { open_idx(path()); });
  }
  /// Writes a changed file, expects that it is refused by name, and puts the old one back.
  void expect_refused(const std::string& name, const Bytes& changed, const Bytes& original) {
    write(name, changed);
    EXPECT_NE(error().find(name), std::string::npos);
    write(name, original);
    EXPECT_NO_THROW(open_idx(path()));
  }

  testing::TemporaryFolder folder_;
  Bytes images_, labels_;
};

TEST_F(Idx, PartsLabelsAndPixels) {
  const data::DataSource source = open_data({.spec = "idx:" + path()});
  const data::Dataset& data = *source.dataset;
  EXPECT_EQ(source.train.size(), 4u);
  EXPECT_EQ(source.validation, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_EQ(data.classes(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(data.label(3), 2);
  EXPECT_EQ(data.label(4), 1);
  EXPECT_EQ(data.name(5), std::string(kTestImages) + "[1]");
  Bytes pixels(18);
  ASSERT_EQ(data.read(1, {3, 2, 3}, data::Resize::bilinear, pixels).status, data::ReadStatus::ok);
  for (int i = 0; i < 6; ++i) {
    for (int c = 0; c < 3; ++c) EXPECT_EQ(pixels[static_cast<std::size_t>(i * 3 + c)], 60 + 10 * i);
  }
}

TEST_F(Idx, GzipAndPlainAreTheSame) {
  const auto plain = open_idx(path()).dataset->fingerprint();
  remove(kTrainImages), remove(kTestLabels);
  write(std::string(kTrainImages) + ".gz", gzip_of(images_));
  write(std::string(kTestLabels) + ".gz", gzip_of(idx_of({2}, {1, 0})));
  EXPECT_EQ(open_idx(path()).dataset->fingerprint(), plain);
}

TEST_F(Idx, WithoutTestPartItIsSplit) {
  remove(kTestImages), remove(kTestLabels);
  EXPECT_FALSE(open_idx(path()).has_test);
  remove(kTrainLabels);
  EXPECT_NE(error().find(kTrainLabels), std::string::npos);
}

TEST_F(Idx, OneByteShortOrLong) {
  Bytes longer = images_;
  longer.push_back(0);
  expect_refused(kTrainImages, longer, images_);
  expect_refused(kTrainImages, prefix(images_, images_.size() - 1), images_);
  expect_refused(kTrainImages, prefix(images_, 9), images_);
  expect_refused(kTrainImages, {}, images_);
  longer = labels_;
  longer.push_back(0);
  expect_refused(kTrainLabels, longer, labels_);
  expect_refused(kTrainLabels, prefix(labels_, labels_.size() - 1), labels_);
}

TEST_F(Idx, DamagedGzip) {
  remove(kTrainImages);
  const std::string name = std::string(kTrainImages) + ".gz";
  const Bytes packed = gzip_of(images_);
  write(name, packed);
  expect_refused(name, prefix(packed, packed.size() - 12), packed);
  expect_refused(name, patched(packed, packed.size() - 6, 0, 2), packed);  // its checksum
  Bytes longer = images_;
  longer.resize(longer.size() + 50'000'000);
  expect_refused(name, gzip_of(longer), packed);
}

TEST_F(Idx, WrongMagic) {
  for (const std::uint32_t magic : {0x801u, 0x80Du, 0x3080000u, 0x1F8B0803u}) {
    expect_refused(kTrainImages, patched(images_, 0, magic, 4), images_);
  }
  expect_refused(kTrainLabels, patched(labels_, 0, 0x803, 4), labels_);
}

TEST_F(Idx, SidesWhoseProductOverflows) {
  // 2^32 - 1 cubed is more than 2^64; 2^24 * 2^20 * 2^20 is 2^64 exactly, which wraps to 0.
  const Bytes huge =
      patched(patched(patched(images_, 4, 0xFFFFFFFF, 4), 8, 0xFFFFFFFF, 4), 12, 0xFFFFFFFF, 4);
  expect_refused(kTrainImages, huge, images_);
  const Bytes wrapping =
      patched(patched(patched(images_, 4, 1 << 24, 4), 8, 1 << 20, 4), 12, 1 << 20, 4);
  expect_refused(kTrainImages, prefix(wrapping, 16), images_);
  expect_refused(kTrainImages, patched(images_, 8, 0, 4), images_);
}

TEST_F(Idx, AHeaderThatClaimsGigabytesTakesNoMemory) {
  // 60,000 images of 1000x1000 in a file of 40 bytes: refused after reading those.
  const Bytes claims = patched(patched(patched(images_, 4, 60'000, 4), 8, 1000, 4), 12, 1000, 4);
  expect_refused(kTrainImages, claims, images_);
}

TEST_F(Idx, CountsThatDiffer) {
  expect_refused(kTrainLabels, idx_of({3}, {2, 0, 1}), labels_);
  EXPECT_NO_THROW(open_idx(path()));
}

TEST_F(Idx, NoImages) {
  write(kTrainImages, idx_of({0, 3, 2}, {}));
  write(kTrainLabels, idx_of({0}, {}));
  EXPECT_NE(error().find("no images"), std::string::npos);
}

TEST(IdxFashion, DebiansPackageIsKnownByItsLabels) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const data::DataSource source = open_data({.spec = "idx:" + folder});
  EXPECT_EQ(source.train.size(), 60'000u);
  EXPECT_EQ(source.validation.size(), 10'000u);
  // The first training image is an ankle boot, as Zalando's own README shows.
  EXPECT_EQ(source.dataset->classes()[static_cast<std::size_t>(source.dataset->label(0))],
            "Ankle boot");
}

}  // namespace
}  // namespace cputrain::datasets
