#include "datasets/formats/cifar.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "datasets/open.h"
#include "datasets/pixels/resize.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kPixels = 3072;

/// Value of byte i of the planes of image `number`.
std::uint8_t plane_value(std::size_t number, std::size_t i) {
  return static_cast<std::uint8_t>(number * 50 + i * 7 + i / 1024 * 31);
}

/// Records with these label bytes each, image i being number `first` + i.
Bytes records(const std::vector<Bytes>& labels, std::size_t first = 0) {
  Bytes file;
  for (std::size_t number = 0; number < labels.size(); ++number) {
    file.insert(file.end(), labels[number].begin(), labels[number].end());
    for (std::size_t i = 0; i < kPixels; ++i) file.push_back(plane_value(first + number, i));
  }
  return file;
}

class CifarTest : public ::testing::Test {
 protected:
  CifarTest() {
    write("data_batch_1.bin", records({{3}, {9}, {0}}));
    write("data_batch_3.bin", records({{1}, {2}}, 3));
    write("test_batch.bin", records({{9}, {8}}, 5));
    std::string names;
    for (int i = 0; i < 10; ++i) names += "class" + std::to_string(i) + "\n";
    write("batches.meta.txt", bytes_of(names + "\n"));
  }
  void write(const std::string& name, const Bytes& bytes) {
    write_bytes(folder_.path() / "cifar-10-batches-bin" / name, bytes);
  }
  std::string path(const std::string& below = "") const { return folder_.path().string() + below; }
  std::string error(const std::string& spec) const {
    return testing::refused(ExitCode::data, [&] { open_data({.spec = spec}); });
  }
  void expect_refused(const std::string& name, const Bytes& bytes, const std::string& says) {
    write(name, bytes);
    const std::string message = error("cifar10:" + path());
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(CifarTest, PartsLabelsNamesAndPixels) {
  for (const char* folder : {"", "/cifar-10-batches-bin"}) {
    const data::DataSource source = open_data({.spec = "cifar10:" + path(folder)});
    const data::Dataset& data = *source.dataset;
    EXPECT_EQ(source.train, (std::vector<std::uint32_t>{0, 1, 2, 3, 4})) << "in the files' order";
    EXPECT_EQ(source.validation, (std::vector<std::uint32_t>{5, 6}));
    EXPECT_EQ(data.classes()[9], "class9");
    const std::vector<int> labels{3, 9, 0, 1, 2, 9, 8};
    for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(data.label(i), labels[i]);
    EXPECT_EQ(data.name(4), "data_batch_3.bin[1]");
    EXPECT_EQ(data.name(5), "test_batch.bin[0]");
    EXPECT_NE(source.description.find("2 of the 5 training files"), std::string::npos);
    for (const std::size_t sample : {0u, 2u, 4u, 6u}) {
      Bytes pixels(kPixels);
      ASSERT_EQ(data.read(sample, {32, 32, 3}, data::Resize::bilinear, pixels).status,
                data::ReadStatus::ok);
      for (std::size_t i = 0; i < kPixels; ++i) {
        // Planes of 1024 become pixels of three.
        ASSERT_EQ(pixels[i], plane_value(sample, i % 3 * 1024 + i / 3)) << sample << " " << i;
      }
    }
  }
}

TEST_F(CifarTest, IsResizedAsAnyImage) {
  const auto data = open_cifar(Cifar::ten, path()).dataset;
  Image decoded{32, 32, Bytes(kPixels)};
  data->read(1, {32, 32, 3}, data::Resize::bilinear, decoded.rgb);
  for (const data::Resize resize : {data::Resize::bilinear, data::Resize::nearest}) {
    const Shape image{128, 128, 3};
    Bytes expected(image.size()), pixels(image.size());
    resize_image(decoded, image, resize, expected);
    data->read(1, image, resize, pixels);
    EXPECT_EQ(pixels, expected);
  }
}

TEST_F(CifarTest, WithoutTestFileItIsSplit) {
  std::filesystem::remove(folder_.path() / "cifar-10-batches-bin/test_batch.bin");
  const data::DataSource source =
      open_data({.spec = "cifar10:" + path(), .validation_split = 0, .seed = 1});
  EXPECT_EQ(source.train.size(), 5u);
  EXPECT_NE(source.description.find("no test_batch.bin"), std::string::npos);
}

TEST_F(CifarTest, NamesAreKnownWhereTheFileIsMissingAndCheckedWhereItIsNot) {
  std::filesystem::remove(folder_.path() / "cifar-10-batches-bin/batches.meta.txt");
  EXPECT_EQ(open_cifar(Cifar::ten, path()).dataset->classes()[6], "frog");
  for (const char* names : {"", "a\nb\n", "a\na\nb\nc\nd\ne\nf\ng\nh\ni\n"}) {
    expect_refused("batches.meta.txt", bytes_of(names), "class names");
  }
  expect_refused("batches.meta.txt", Bytes(70'000, 'x'), "class names");
}

TEST_F(CifarTest, OneByteShortOrLongAndNothing) {
  const Bytes good = records({{3}, {9}, {0}});
  Bytes longer = good;
  longer.push_back(0);
  expect_refused("data_batch_1.bin", longer, "1 more than 3 records of 3073");
  expect_refused("data_batch_1.bin", prefix(good, good.size() - 1), "3072 more than 2 records");
  expect_refused("data_batch_1.bin", {}, "0 bytes");
}

TEST_F(CifarTest, AFileThatChangesOnceItIsOpenIsAnError) {
  const data::DataSource source = open_data({.spec = "cifar10:" + path()});
  const auto said = [&](std::size_t image) {
    std::vector<std::uint8_t> pixels(kPixels);
    return testing::refusal_of(ExitCode::data, [&] {
      source.dataset->read(image, {32, 32, 3}, data::Resize::bilinear, pixels);
    });
  };
  const std::string file = path("/cifar-10-batches-bin/data_batch_1.bin");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(3100).put('x');
  EXPECT_NE(said(1).find("data_batch_1.bin"), std::string::npos) << said(1);
  EXPECT_NE(said(1).find("record 1"), std::string::npos) << said(1);
  EXPECT_EQ(said(2), "");
  std::filesystem::resize_file(file, 2 * 3073);
  EXPECT_NE(said(2).find("has become shorter"), std::string::npos) << said(2);
  EXPECT_EQ(source.dataset->label(2), 0) << "labels are kept";
}

TEST_F(CifarTest, LabelsOutOfRange) {
  expect_refused("test_batch.bin", records({{1}, {10}}), "record 1 has the label 10");
  expect_refused("test_batch.bin", records({{255}}), "label 255");
}

TEST_F(CifarTest, TheFingerprintHangsOnEveryByte) {
  const auto print = [&] { return open_cifar(Cifar::ten, path()).dataset->fingerprint(); };
  const auto first = print();
  EXPECT_EQ(print(), first);
  Bytes changed = records({{3}, {9}, {0}});
  changed[5000] ^= 1;
  write("data_batch_1.bin", changed);
  EXPECT_NE(print(), first);
}

TEST(Cifar100, FineLabelsCount) {
  testing::TemporaryFolder folder;
  const auto path = folder.path().string();
  write_bytes(folder.path() / "train.bin", records({{19, 99}, {0, 1}}));
  write_bytes(folder.path() / "test.bin", records({{3, 98}}, 2));
  const data::DataSource source = open_data({.spec = "cifar100:" + path});
  EXPECT_EQ(source.dataset->classes().size(), 100u);
  EXPECT_EQ(source.dataset->label(0), 99);
  EXPECT_EQ(source.dataset->label(2), 98);
  Bytes pixels(kPixels);
  source.dataset->read(2, {32, 32, 3}, data::Resize::bilinear, pixels);
  EXPECT_EQ(pixels[4], plane_value(2, 1025));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "fine " + std::to_string(i) + "\n";
  write_bytes(folder.path() / "fine_label_names.txt", bytes_of(names));
  EXPECT_EQ(open_cifar(Cifar::hundred, path).dataset->classes()[42], "fine 42");
  for (const Bytes& labels : {Bytes{20, 5}, Bytes{5, 100}}) {
    write_bytes(folder.path() / "test.bin", records({labels}));
    EXPECT_THROW(open_cifar(Cifar::hundred, path), Error);
  }
  write_bytes(folder.path() / "test.bin", prefix(records({{1, 1}}), 3073));
  EXPECT_THROW(open_cifar(Cifar::hundred, path), Error) << "a record of CIFAR-10";
}

/// Pickles can run programs: they are refused by their names, with what to do.
TEST_F(CifarTest, PicklesAreRefused) {
  testing::TemporaryFolder pickles;
  const auto refused = [&](const std::string& spec) {
    const std::string message = error(spec);
    EXPECT_NE(message.find("pickle"), std::string::npos) << message;
    EXPECT_NE(message.find("scripts/datasets/cifar10"), std::string::npos) << message;
  };
  const std::string root = pickles.path().string();
  write_bytes(pickles.path() / "cifar-10-batches-py/data_batch_1", bytes_of("\x80\x02}"));
  refused("cifar10:" + root);
  refused("cifar10:" + root + "/cifar-10-batches-py");
  refused(root + "/cifar-10-batches-py");
  refused(root + "/cifar-10-batches-py/data_batch_1");
  write_bytes(pickles.path() / "x.pkl", bytes_of("\x80\x02}"));
  refused(root + "/x.pkl");
  testing::TemporaryFolder hundred;
  write_bytes(hundred.path() / "cifar-100-python/train", bytes_of("\x80\x02}"));
  refused("cifar100:" + hundred.path().string());
}

TEST_F(CifarTest, AFolderOfAnotherFormIsToldItsName) {
  EXPECT_NE(error(path("/cifar-10-batches-bin")).find("--data cifar10:"), std::string::npos);
  EXPECT_NE(error(path()).find("--data cifar10:"), std::string::npos);
  EXPECT_NE(error("cifar10:" + path("/none")).find("does not exist"), std::string::npos);
  EXPECT_NE(error("cifar100:" + path()).find("no train.bin"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::datasets
