#include "datasets/formats/packed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "comm/solo.h"
#include "core/error.h"
#include "datasets/datasets.h"
#include "datasets/formats/packed_format.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

constexpr Shape kImage{12, 12, 3};

Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Ten images of two classes, packed with a validation part of two.
class Packed : public ::testing::Test {
 protected:
  Packed() {
    for (int i = 0; i < 10; ++i) {
      Image image = smooth_image(20, 16);
      for (auto& value : image.rgb) value = static_cast<std::uint8_t>(value - i);
      write_bytes(folder_.path() / "p" / (i % 2 ? "dog" : "cat") / (std::to_string(i) + ".png"),
                  png_of(image));
    }
  }
  data::DataSource source(double split = 0.2) const {
    return pipeline_.open(
        {.spec = (folder_.path() / "p").string(), .validation_split = split, .seed = 4});
  }
  std::string file() const { return (folder_.path() / "p.ctpack").string(); }
  data::PackReport pack(const data::DataSource& from,
                        data::Resizing resize = data::Resize::bilinear) const {
    return pipeline_.pack(from, {file(), kImage, resize, 2, {}});
  }
  data::DecodedData decode(const data::DataSource& from,
                           data::Resizing resize = data::Resize::bilinear) const {
    const auto comm = comm::make_solo();
    return pipeline_.decode(from, {kImage, 1, {}, resize}, comm->node_memory(),
                            comm->node_barrier());
  }
  std::string error() const {
    try {
      open_packed(file());
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::data);
      EXPECT_NE(std::string(caught.what()).find(file()), std::string::npos);
      return caught.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing::TemporaryFolder folder_;
  data::DataPipeline pipeline_ = make_data_pipeline();
};

TEST_F(Packed, HoldsWhatWasPacked) {
  const data::DataSource from = source();
  const data::PackReport report = pack(from);
  EXPECT_EQ(report.images, 10u);
  EXPECT_EQ(report.bytes, std::filesystem::file_size(file()));
  const data::DataSource packed = pipeline_.open({.spec = file()});
  EXPECT_EQ(packed.train, from.train) << "numbers of samples are what they were";
  EXPECT_EQ(packed.validation, from.validation);
  EXPECT_EQ(packed.dataset->classes(), from.dataset->classes());
  const data::DecodedData a = decode(from), b = decode(packed);
  EXPECT_TRUE(b.train.stored);
  EXPECT_EQ(a.bytes, b.bytes);
  for (const auto& [one, other] :
       {std::pair(&a.train, &b.train), std::pair(&a.validation, &b.validation)}) {
    EXPECT_EQ(one->labels, other->labels);
    EXPECT_EQ(one->samples, other->samples);
    std::vector<std::uint8_t> space(kImage.size());
    for (std::size_t i = 0; i < one->size(); ++i) {
      const std::uint8_t* read = other->pixels_of(i, space);
      EXPECT_TRUE(std::equal(one->pixels[i], one->pixels[i] + kImage.size(), read));
      EXPECT_EQ(packed.dataset->name(one->samples[i]), from.dataset->name(one->samples[i]));
    }
  }
}

TEST_F(Packed, WithoutAValidationPartItIsSplitWhenItIsRead) {
  pack(source(0));
  const data::DataSource packed =
      pipeline_.open({.spec = file(), .validation_split = 0.2, .seed = 4});
  EXPECT_EQ(packed.validation, source(0.2).validation);
}

TEST_F(Packed, SixFoldOfPackedImagesReadsEachWhereItLies) {
  pack(source());
  const data::DataSource packed = pipeline_.open({.spec = file(), .expand = data::Expand::six});
  const data::DecodedData data = decode(packed);
  EXPECT_EQ(data.train.size(), 48u);
  std::vector<std::uint8_t> first(kImage.size()), sixth(kImage.size());
  data.train.pixels_of(0, first), data.train.pixels_of(5, sixth);
  EXPECT_EQ(first, sixth);
  EXPECT_EQ(data.train.turns[5], data::Turn::by_270);
}

TEST_F(Packed, AnotherSizeOrResizeIsRefusedWithTheOneThatItHas) {
  pack(source(), data::Resize::nearest);
  const data::DataSource packed = pipeline_.open({.spec = file()});
  const auto refusal = [&](Shape image, data::Resize resize) {
    try {
      const auto comm = comm::make_solo();
      pipeline_.decode(packed, {image, 1, {}, resize}, comm->node_memory(), comm->node_barrier());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const auto& [image, resize] : {std::pair(Shape{24, 24, 3}, data::Resize::nearest),
                                      std::pair(kImage, data::Resize::bilinear)}) {
    EXPECT_NE(refusal(image, resize).find("--image-size 12 --resize nearest"), std::string::npos)
        << refusal(image, resize);
  }
  EXPECT_EQ(decode(packed, data::Resize::nearest).train.size(), 8u);
}

/// A packed file of photographs that EXIF turns holds one of two forms; any other holds both.
TEST_F(Packed, RemembersWhatWasDoneWithExifOrientation) {
  const auto open = [&](data::Exif exif) { return pipeline_.open({.spec = file(), .exif = exif}); };
  const auto refusal = [&](data::Exif exif) -> std::string {
    try {
      decode(open(exif));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  pack(source());
  EXPECT_EQ(refusal(data::Exif::apply) + refusal(data::Exif::ignore), "");
  write_bytes(folder_.path() / "p/cat/4.png", with_orientation(jpeg_of(smooth_image(20, 16)), 6));
  const auto photographs = [&](data::Exif exif) {
    return pipeline_.open({.spec = (folder_.path() / "p").string(), .exif = exif});
  };
  for (const auto& [done, other] : {std::pair(data::Exif::apply, data::Exif::ignore),
                                    std::pair(data::Exif::ignore, data::Exif::apply)}) {
    pack(photographs(done));
    EXPECT_EQ(refusal(done), "");
    EXPECT_NE(refusal(other).find(fmt::format("--exif {}", word_of(done))), std::string::npos)
        << refusal(other);
    const auto again = [&](data::Exif exif) {
      pipeline_.pack(
          open(exif),
          {(folder_.path() / "q.ctpack").string(), kImage, data::Resize::bilinear, 1, {}});
    };
    EXPECT_THROW(again(other), Error);
    again(done);
    const data::DataSource copy = pipeline_.open({.spec = (folder_.path() / "q.ctpack").string()});
    EXPECT_EQ(copy.dataset->ready_form()->exif, done);
  }
}

/// Version 1, before there was a choice: nothing was turned.
TEST_F(Packed, FilesOfBeforeHoldImagesAsTheyAreStored) {
  pack(source(), data::Resize::nearest);
  Bytes bytes = content_of(file());
  const auto form_of = [&](std::uint8_t version, std::uint8_t number) {
    bytes[8] = version;
    std::fill_n(bytes.begin() + 28, 4, std::uint8_t{0});
    bytes[28] = number;
    write_bytes(file(), with_packed_checksum(bytes));
    return pipeline_.open({.spec = file()}).dataset->ready_form().value();
  };
  EXPECT_EQ(form_of(1, 1).exif, data::Exif::ignore);
  EXPECT_EQ(form_of(1, 1).resize, data::Resize::nearest);
  EXPECT_EQ(form_of(1, 0).resize, data::Resize::bilinear_plain);
  EXPECT_EQ(form_of(2, 1).exif, std::nullopt);
  EXPECT_EQ(form_of(2, 3).exif, data::Exif::apply);
  EXPECT_EQ(form_of(2, 4).resize, data::Resize::bilinear_plain);
  EXPECT_THROW(form_of(1, 2), Error);
  EXPECT_THROW(form_of(2, 6), Error);
}

TEST_F(Packed, RemembersHowImagesWereResized) {
  for (const data::Resizing& resize :
       {data::Resizing{data::Resize::area}, data::Resizing{data::Resize::bilinear_plain},
        data::Resizing{data::Resize::bicubic, {data::Fitting::crop, 8750}},
        data::Resizing{data::Resize::bilinear, {data::Fitting::pad}}}) {
    pack(source(), resize);
    const data::DataSource packed = pipeline_.open({.spec = file()});
    EXPECT_EQ(packed.dataset->ready_form()->resize, resize) << to_text(resize);
    EXPECT_EQ(decode(packed, resize).train.size(), 8u);
    EXPECT_THROW(decode(packed, data::Resize::nearest), Error);
  }
}

/// Crops of random size are cut from larger images than the file has.
TEST_F(Packed, HasNoImagesToCutFrom) {
  pack(source());
  const data::DataSource packed = pipeline_.open({.spec = file()});
  try {
    pipeline_.cache_size(packed, {kImage, data::Resize::bilinear, 2});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--augment crop"), std::string::npos) << error.what();
  }
}

TEST_F(Packed, DamagedImagesAreLeftOutAndNamed) {
  write_bytes(folder_.path() / "p/cat/4.png", bytes_of("no image"));
  const data::PackReport report = pack(source());
  EXPECT_EQ(report.images, 9u);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_TRUE(report.bad[0].name.ends_with("cat/4.png"));
  EXPECT_EQ(decode(pipeline_.open({.spec = file()})).bad.size(), 0u);
}

TEST_F(Packed, AChangedPixelIsFound) {
  pack(source());
  Bytes bytes = content_of(file());
  bytes[bytes.size() - 1] ^= 1;  // of the last image
  write_bytes(file(), bytes);
  const data::DataSource packed = pipeline_.open({.spec = file()});
  const data::DecodedData data = decode(packed);
  ASSERT_EQ(data.bad.size(), 1u);
  EXPECT_EQ(data.bad[0].name, packed.dataset->name(9));
  EXPECT_EQ(pipeline_.check(packed, 1, {}).bad.size(), 1u);
}

/// What an open file is changed into, in place, and what is then said of an image.
class ChangedPacked : public Packed {
 protected:
  ChangedPacked() {
    pack(source());
    packed_ = pipeline_.open({.spec = file()});
    data_ = decode(packed_);
  }
  std::string said(std::size_t image) const {
    std::vector<std::uint8_t> space(kImage.size());
    try {
      data_.train.pixels_of(image, space);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.what();
    }
    return "";
  }
  void expect_failure(const std::string& says) const {
    const data::BatchPlan plan(data_.train.size(), data_.train.size(), 4, 0, 1);
    const auto batches = pipeline_.batches(data_.train, plan, {});
    EXPECT_TRUE(batches->may_fail());
    batches->seek(0, 0);
    std::size_t images = 0;
    for (int k = 0; k < plan.micro_batches(0); ++k) images += batches->next().images.size();
    EXPECT_EQ(images, data_.train.size()) << "ranks stay together";
    EXPECT_NE(batches->failure().find(says), std::string::npos) << batches->failure();
    EXPECT_NE(batches->failure().find(file()), std::string::npos) << batches->failure();
  }

  data::DataSource packed_;
  data::DecodedData data_;
};

TEST_F(ChangedPacked, CutIsAnError) {
  EXPECT_EQ(said(7), "");
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - kImage.size() * 4);
  EXPECT_NE(said(7).find("has become shorter"), std::string::npos) << said(7);
  expect_failure("has become shorter");
  std::filesystem::resize_file(file(), 0);
  EXPECT_NE(said(0).find("has become shorter"), std::string::npos);
}

TEST_F(ChangedPacked, OtherPixelsAreAnError) {
  const auto before = std::filesystem::last_write_time(file());
  std::fstream open(file(), std::ios::in | std::ios::out | std::ios::binary);
  open.seekp(-1, std::ios::end);
  open.put('x').flush();
  std::filesystem::last_write_time(file(), before);  // which tells nothing
  expect_failure("wrong checksum");
}

TEST_F(ChangedPacked, ANewFileOfTheNameIsNotTheOneThatIsOpen) {
  std::filesystem::rename(file(), folder_.path() / "old.ctpack");
  write_bytes(file(), bytes_of("new"));
  const data::BatchPlan plan(8, 8, 8, 0, 1);
  const auto batches = pipeline_.batches(data_.train, plan, {});
  batches->seek(0, 0);
  batches->next();
  EXPECT_EQ(batches->failure(), "");
}

/// Every byte before the pixels counts.
TEST_F(Packed, AChangedByteBeforeThePixelsIsFound) {
  pack(source());
  const Bytes good = content_of(file());
  for (std::size_t at = 0; at < kPackedAlign; at += at < 400 ? 1 : 61) {
    Bytes bytes = good;
    bytes[at] ^= 0x41;
    write_bytes(file(), bytes);
    error();
  }
  for (const std::size_t size : {0u, 7u, 79u, 80u, 4095u}) {
    write_bytes(file(), prefix(good, size));
    error();
  }
  write_bytes(file(), prefix(good, good.size() - 1));
  EXPECT_NE(error().find("bytes where"), std::string::npos);
  Bytes longer = good;
  longer.push_back(0);
  write_bytes(file(), longer);
  error();
}

/// Headers whose checksum is right: what a hostile hand would write.
TEST_F(Packed, ImpossibleHeadersAreRefused) {
  pack(source());
  const Bytes good = content_of(file());
  const auto refused = [&](std::size_t at, std::uint64_t value, std::size_t size,
                           const std::string& says) {
    Bytes bytes = good;
    for (std::size_t i = 0; i < size; ++i) {
      bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    write_bytes(file(), with_packed_checksum(bytes));
    const std::string message = error();
    EXPECT_NE(message.find(says), std::string::npos) << at << " " << value << ": " << message;
  };
  refused(0, 0x4B, 1, "does not begin");
  for (const std::uint64_t version : {0u, 4u}) {
    refused(8, version, 4, fmt::format("version {}", version));
  }
  for (const std::uint64_t side : {0u, 13u, 16385u, 0xFFFFFFFFu}) refused(16, side, 4, "claims");
  refused(20, 0, 4, "claims");
  refused(24, 4, 4, "claims");
  refused(28, 6, 4, "claims");
  // 2^32 more images would be the same product in 32 bits, 2^64 / 432 wraps in 64.
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{11}, (std::uint64_t{1} << 32) + 10,
        ~std::uint64_t{0}, ~std::uint64_t{0} / 432}) {
    refused(32, count, 8, "claims");
  }
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    refused(40, count, 8, count > 1 ? "claims" : "");
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{5000}, ~std::uint64_t{0}}) {
    refused(48, bytes, 8, "claim");
  }
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{80}, std::uint64_t{4095},
                                 std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    refused(56, at, 8, "claims");
  }
  refused(64, 0, 8, "written in it");
  refused(80, 2, 4, "label 2");
  refused(84, 7, 4, "part 7");
}

TEST_F(Packed, NamesAreAsManyAsClaimed) {
  pack(source());
  Bytes bytes = content_of(file());
  const std::size_t dog = position_of(bytes, std::string_view("\0dog\0", 5));
  bytes[dog] = 'x';  // "cat" and "dog" run together
  write_bytes(file(), with_packed_checksum(bytes));
  EXPECT_NE(error().find("names"), std::string::npos);
  bytes[dog] = 0, bytes[dog + 1] = 'c', bytes[dog + 2] = 'a', bytes[dog + 3] = 't';
  write_bytes(file(), with_packed_checksum(bytes));
  EXPECT_NE(error().find("class twice"), std::string::npos);
}

TEST_F(Packed, WrongRequests) {
  const auto code = [&](const data::PackRequest& request, const data::DataSource& from) {
    try {
      pipeline_.pack(from, request);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::ok;
  };
  const data::DataSource from = source();
  EXPECT_EQ(
      code({(folder_.path() / "p.bin").string(), kImage, data::Resize::bilinear, 1, {}}, from),
      ExitCode::usage);
  EXPECT_EQ(code({(folder_.path() / "no/p.ctpack").string(), kImage, data::Resize::bilinear, 1, {}},
                 from),
            ExitCode::output);
  pack(from);
  const data::DataSource packed = pipeline_.open({.spec = file()});
  const std::string again = (folder_.path() / "q.ctpack").string();
  EXPECT_EQ(code({again, {6, 6, 3}, data::Resize::bilinear, 1, {}}, packed), ExitCode::usage);
  EXPECT_EQ(code({again, kImage, data::Resize::bilinear, 1, {}}, packed), ExitCode::ok);
  for (int i = 0; i < 10; ++i) {
    write_bytes(folder_.path() / "p" / (i % 2 ? "dog" : "cat") / (std::to_string(i) + ".png"),
                bytes_of("x"));
  }
  EXPECT_EQ(code({again, kImage, data::Resize::bilinear, 1, {}}, source()), ExitCode::data);
  EXPECT_EQ(pipeline_.open({.spec = again}).train.size(), 8u) << "the old file is still there";
}

}  // namespace
}  // namespace cputrain::datasets
