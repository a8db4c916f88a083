#include "datasets/formats/packed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/datasets/formats/packed_files.h"
#include "tests/support/refusal.h"

namespace cputrain::datasets {
namespace {

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
    return testing::refusal_of(ExitCode::usage, [&] {
      const auto comm = comm::make_solo();
      pipeline_.decode(packed, {image, 1, {}, resize}, comm->node_memory());
    });
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
    return testing::refusal_of(ExitCode::usage, [&] { decode(open(exif)); });
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
      pipeline_.pack(open(exif), (folder_.path() / "q.ctpack").string(),
                     {kImage, 1, {}, data::Resize::bilinear});
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
  const std::string text = testing::refused(ExitCode::usage, [&] {
    pipeline_.cache_size(packed, {kImage, data::Resize::bilinear, 2});
  });
  EXPECT_NE(text.find("--augment crop"), std::string::npos) << text;
}

TEST_F(Packed, DamagedImagesAreLeftOutAndNamed) {
  write_bytes(folder_.path() / "p/cat/4.png", bytes_of("no image"));
  const data::PackReport report = pack(source());
  EXPECT_EQ(report.images, 9u);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_TRUE(report.bad[0].name.ends_with("cat/4.png"));
  EXPECT_EQ(decode(pipeline_.open({.spec = file()})).bad.size(), 0u);
}

TEST_F(Packed, WrongRequests) {
  const auto code = [&](const std::string& path, const data::DecodeRequest& request,
                        const data::DataSource& from) {
    try {
      pipeline_.pack(from, path, request);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::ok;
  };
  const data::DataSource from = source();
  EXPECT_EQ(
      code((folder_.path() / "p.bin").string(), {kImage, 1, {}, data::Resize::bilinear}, from),
      ExitCode::usage);
  EXPECT_EQ(code((folder_.path() / "no/p.ctpack").string(), {kImage, 1, {}, data::Resize::bilinear},
                 from),
            ExitCode::output);
  pack(from);
  const data::DataSource packed = pipeline_.open({.spec = file()});
  const std::string again = (folder_.path() / "q.ctpack").string();
  EXPECT_EQ(code(again, {{6, 6, 3}, 1, {}, data::Resize::bilinear}, packed), ExitCode::usage);
  EXPECT_EQ(code(again, {kImage, 1, {}, data::Resize::bilinear}, packed), ExitCode::ok);
  for (int i = 0; i < 10; ++i) {
    write_bytes(folder_.path() / "p" / (i % 2 ? "dog" : "cat") / (std::to_string(i) + ".png"),
                bytes_of("x"));
  }
  EXPECT_EQ(code(again, {kImage, 1, {}, data::Resize::bilinear}, source()), ExitCode::data);
  EXPECT_EQ(pipeline_.open({.spec = again}).train.size(), 8u) << "the old file is still there";
}

}  // namespace
}  // namespace cputrain::datasets
