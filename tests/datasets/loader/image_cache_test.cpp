// Decoding into the node's memory: the same on any number of ranks, and what bad files do to it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "data/pixel_sample.h"
#include "datasets/datasets.h"
#include "datasets/loader/image_cache.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

/// What a rank saw, in a form that can be compared after the memory is gone.
struct Seen {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
  std::vector<std::string> bad;
  std::size_t warnings = 0;
  bool operator==(const Seen&) const = default;
};

Seen seen(const data::DecodedData& data) {
  Seen seen;
  for (const data::ImageSet* set : {&data.train, &data.validation}) {
    for (const std::uint8_t* image : set->pixels) {
      seen.pixels.insert(seen.pixels.end(), image, image + set->image.size());
    }
    seen.labels.insert(seen.labels.end(), set->labels.begin(), set->labels.end());
    seen.samples.insert(seen.samples.end(), set->samples.begin(), set->samples.end());
  }
  for (const data::BadSample& bad : data.bad) {
    seen.bad.push_back(fs::path(bad.name).filename().string() + ": " +
                       std::string(word_of(bad.result.status)) + ": " + bad.result.detail);
  }
  seen.warnings = data.warnings;
  return seen;
}

class Cache : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) {
    write_bytes(folder_.path() / name, bytes);
  }
  /// Twelve good images of two classes in all manner of formats.
  void write_good_images() {
    const Image image = smooth_image(20, 15);
    for (const std::string folder : {"cat", "dog"}) {
      for (int i = 0; i < 3; ++i) write(folder + "/" + std::to_string(i) + ".jpg", jpeg_of(image));
      write(folder + "/grey.jpg", jpeg_of(image, JpegKind::grey));
      write(folder + "/inks.jpg", jpeg_of(image, JpegKind::cmyk_adobe));
      write(folder + "/name with spaces \xC3\xA9.jpg", png_of(image));  // and the wrong name
    }
  }
  data::DataSource open(double split = 0.25) const {
    return pipeline_.open({.spec = folder_.path().string(), .validation_split = split, .seed = 1});
  }
  data::DecodedData decode(const data::DataSource& source, comm::Communicator& comm,
                           int threads = 1, data::OnProgress progress = {}) const {
    return pipeline_.decode(source, {{8, 10, 3}, threads, std::move(progress)}, comm.node_memory());
  }
  std::string error(double split = 0.25) const {
    try {
      decode(open(split), *comm::make_solo());
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::data);
      return caught.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing::TemporaryFolder folder_;
  data::DataPipeline pipeline_ = make_data_pipeline();
};

TEST_F(Cache, HoldsWhatTheDataSetReads) {
  write_good_images();
  const data::DataSource source = open();
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(source, *comm, 2);
  EXPECT_EQ(data.train.samples, source.train);
  EXPECT_EQ(data.validation.samples, source.validation);
  EXPECT_TRUE(data.bad.empty());
  std::vector<std::uint8_t> expected(Shape{8, 10, 3}.size());
  for (const data::ImageSet* set : {&data.train, &data.validation}) {
    EXPECT_EQ(set->image, (Shape{8, 10, 3}));
    for (std::size_t i = 0; i < set->size(); ++i) {
      EXPECT_EQ(set->labels[i], source.dataset->label(set->samples[i]));
      ASSERT_EQ(source.dataset->read(set->samples[i], set->image, data::Resize::bilinear, expected)
                    .status,
                data::ReadStatus::ok);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), set->pixels[i]));
    }
  }
}

/// For crops of random size: the whole image, at twice the size, and none of it in validation.
TEST_F(Cache, TrainingImagesMayBeKeptLarger) {
  write_good_images();
  const data::DataSource source = open();
  const data::Resizing central{data::Resize::bicubic, {data::Fitting::crop, 8750}};
  const data::Resizing whole{data::Resize::bicubic, {data::Fitting::crop}};
  const Shape size{8, 10, 3}, twice{16, 20, 3};
  const auto comm = comm::make_solo();
  for (const std::size_t keep : {12u, 10u, 4u, 0u}) {
    const data::DecodeRequest request{.image = size, .resize = central, .keep = keep, .larger = 2};
    const data::DecodedData data = pipeline_.decode(source, request, comm->node_memory());
    const std::size_t larger = std::min<std::size_t>(keep, source.train.size());
    EXPECT_EQ(data.bytes, larger * twice.size() + (keep - larger) * size.size());
    EXPECT_EQ(data.train.kept(), twice);
    EXPECT_EQ(data.validation.kept(), size);
    std::vector<std::uint8_t> expected(twice.size()), space(twice.size());
    for (const data::ImageSet* set : {&data.train, &data.validation}) {
      EXPECT_EQ(set->image, size);
      const auto bytes = std::span(expected).first(set->kept().size());
      for (std::size_t i = 0; i < set->size(); ++i) {
        source.dataset->read(set->samples[i], set->kept(), set->larger == 2 ? whole : central,
                             bytes);
        const std::uint8_t* pixels = set->pixels_of(i, std::span(space).first(bytes.size()));
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), pixels)) << keep << " " << i;
      }
    }
  }
  EXPECT_EQ(pipeline_.cache_size(source, {size, central, 2}).bytes -
                pipeline_.cache_size(source, {size, central}).bytes,
            source.train.size() * (twice.size() - size.size()));
}

TEST_F(Cache, AnImageOfBothPartsCannotBeKeptInTwoSizes) {
  write_good_images();
  const data::DataSource source = pipeline_.open({.spec = folder_.path().string(),
                                                  .validation_split = 0.25,
                                                  .seed = 1,
                                                  .expand = data::Expand::six_leaky});
  EXPECT_NO_THROW(pipeline_.cache_size(source, {{8, 8, 3}}));
  EXPECT_THROW(pipeline_.cache_size(source, {{8, 8, 3}, data::Resize::area, 2}), Error);
}

TEST_F(Cache, BadFilesAreLeftOutAndNamedTheSameOnEveryRank) {
  write_good_images();
  const Bytes good = jpeg_of(smooth_image(160, 120));
  write("cat/zero.jpg", {});
  write("cat/text.jpg", bytes_of("not an image"));
  write("dog/truncated.jpg", prefix(good, 300));
  write("dog/huge.jpg", patched(good, position_of(good, "\xFF\xC0") + 5, 20000u << 16 | 20000, 4));
  write("dog/Thumbs.db", Bytes(64, 0));
  Bytes odd = good;
  odd.insert(odd.end() - 2, {1, 2, 3, 4, 5, 6, 7, 8});
  write("dog/odd.jpg", odd);
  const data::DataSource source = open(0);
  EXPECT_EQ(source.ignored, 1u);
  Seen alone;
  {
    const auto comm = comm::make_solo();
    alone = seen(decode(source, *comm));
  }
  EXPECT_EQ(alone.samples.size(), 13u);
  EXPECT_EQ(alone.warnings, 1u);
  ASSERT_EQ(alone.bad.size(), 4u);
  EXPECT_TRUE(alone.bad[0].starts_with("text.jpg: not an image: "));
  EXPECT_TRUE(alone.bad[1].starts_with("zero.jpg: empty: "));
  EXPECT_TRUE(alone.bad[2].starts_with("huge.jpg: too large: 20000x20000"));
  EXPECT_EQ(alone.bad[3], "truncated.jpg: truncated: its data end before its last pixel");
  for (const int ranks : {2, 3, 20}) {
    std::mutex mutex;
    std::vector<Seen> all;
    threads::run_ranks(ranks, [&](comm::Communicator& comm) {
      const data::DecodedData data = decode(source, comm, 2);
      const std::lock_guard lock(mutex);
      all.push_back(seen(data));
    });
    for (const Seen& one : all) EXPECT_EQ(one, alone) << ranks << " ranks";
  }
}

TEST_F(Cache, UnreadableFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write_good_images();
  fs::permissions(folder_.path() / "dog/1.jpg", fs::perms::none);
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(open(), *comm);
  ASSERT_EQ(data.bad.size(), 1u);
  EXPECT_EQ(data.bad[0].result.status, data::ReadStatus::unreadable);
}

TEST_F(Cache, APartOrAClassWithNothingLeftIsAnError) {
  for (int i = 0; i < 4; ++i) {
    write("cat/" + std::to_string(i) + ".jpg", bytes_of("no image"));
    write("dog/" + std::to_string(i) + ".jpg", bytes_of("no image"));
  }
  EXPECT_NE(error().find("training"), std::string::npos);
  EXPECT_NE(error().find("cat/"), std::string::npos) << "the first bad file is named";
  const Bytes image = png_of(smooth_image(4, 4));
  for (int i = 0; i < 4; ++i) write("dog/" + std::to_string(i) + ".jpg", image);
  EXPECT_NE(error(0).find("'cat'"), std::string::npos);
  write("train/cat/1.png", image), write("train/dog/1.png", image);
  write("val/cat/1.png", {});
  fs::remove_all(folder_.path() / "cat"), fs::remove_all(folder_.path() / "dog");
  EXPECT_NE(error().find("validation"), std::string::npos);
}

TEST_F(Cache, ProgressComesOnTheCallersThreadAndEndsWithAll) {
  const data::DataSource source = pipeline_.open({.spec = "synthetic:300"});
  const auto comm = comm::make_solo();
  const auto caller = std::this_thread::get_id();
  std::size_t last = 0;
  pipeline_.decode(source,
                   {{32, 32, 3},
                    2,
                    [&](std::size_t done, std::size_t total) {
                      EXPECT_EQ(std::this_thread::get_id(), caller);
                      EXPECT_EQ(total, 300u);
                      EXPECT_GE(done, last);
                      last = done;
                    }},
                   comm->node_memory());
  EXPECT_EQ(last, 300u);
}

TEST_F(Cache, ProgressMayStopIt) {
  const data::DataSource source = pipeline_.open({.spec = "synthetic:100"});
  const auto comm = comm::make_solo();
  EXPECT_THROW(pipeline_.decode(
                   source,
                   {{32, 32, 3},
                    2,
                    [](std::size_t, std::size_t) { throw Error(ExitCode::interrupted, "stop"); }},
                   comm->node_memory()),
               Error);
}

/// Two nodes of two ranks, each node with a folder of its own, as local disks are.
class Nodes : public Cache {
 protected:
  static constexpr int kImages = 20;

  void write_node(const std::string& node, const Image& odd) {
    for (const std::string folder : {"cat", "dog"}) {
      for (int i = 0; i < kImages; ++i) {
        const bool other = folder == "dog" && i == 3;
        write(node + "/" + folder + "/" + std::to_string(i) + ".bmp",
              bmp_of(other ? odd : smooth_image(10, 8)));
      }
    }
  }
  /// What the ranks' comparison tells before it throws; empty where they agree.
  std::string disagreement() {
    ::testing::internal::CaptureStderr();
    try {
      threads::run_ranks(
          4,
          [&](comm::Communicator& comm) {
            const std::string node = comm.rank() < 2 ? "one" : "two";
            const data::DataSource source = pipeline_.open(
                {.spec = (folder_.path() / node).string(), .validation_split = 0.25, .seed = 1});
            const data::DecodedData data = decode(source, comm);
            comm::check_agreement(comm, "pixels", data::pixel_sample(data, 5));
          },
          2);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::disagree);
      EXPECT_TRUE(std::string_view(error.what()).starts_with("ranks differ in pixels"));
    }
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(Nodes, ThatDecodeOtherPixelsAreToldBeforeTheFirstStep) {
  write_node("one", smooth_image(10, 8)), write_node("two", smooth_image(10, 8));
  EXPECT_EQ(disagreement(), "");
  Image odd = smooth_image(10, 8);
  odd.rgb[100] ^= 1;  // one bit of one value of one of 40 images
  write_node("two", odd);
  const std::string words = disagreement();
  EXPECT_NE(words.find("ranks 0,1: "), std::string::npos) << words;
  EXPECT_NE(words.find("ranks 2,3: "), std::string::npos) << words;
  EXPECT_NE(words.find("of 40 images"), std::string::npos) << words;
}

TEST_F(Cache, ASampleOfPixelsIsDrawnBySeed) {
  const data::DataSource source =
      pipeline_.open({.spec = "synthetic:200", .validation_split = 0.25});
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(source, *comm);
  EXPECT_EQ(data::pixel_sample(data, 1), data::pixel_sample(data, 1));
  EXPECT_NE(data::pixel_sample(data, 1), data::pixel_sample(data, 2));
  EXPECT_NE(data::pixel_sample(data, 1).find("of 64 images"), std::string::npos);
}

/// 64 rows of a tall image count, the first and the last among them and none far from the next. All
/// rows of a low one do.
TEST(PixelSample, LooksAtRowsAllOverAnImage) {
  for (const int height : {1, 2, 64, 65, 300}) {
    Bytes pixels(static_cast<std::size_t>(height) * 2 * 3, 7);
    data::DecodedData data;
    data.train.image = {height, 2, 3};
    data.train.pixels = {pixels.data()};
    const std::string plain = data::pixel_sample(data, 1);
    std::vector<int> seen;
    for (int y = 0; y < height; ++y) {
      std::uint8_t& value = pixels[static_cast<std::size_t>(y) * 6 + 5];
      value ^= 1;
      if (data::pixel_sample(data, 1) != plain) seen.push_back(y);
      value ^= 1;
    }
    ASSERT_EQ(seen.size(), static_cast<std::size_t>(std::min(height, 64))) << height;
    EXPECT_EQ(seen.front(), 0);
    EXPECT_EQ(seen.back(), height - 1);
    for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_LE(seen[i] - seen[i - 1], height / 63 + 1);
  }
}

/// A mapped file gives the pixels that were packed, so the ranks of a node with a cache and of one
/// with a packed file agree.
TEST_F(Cache, ASampleOfPixelsIsTheSameInAPackedFile) {
  write_good_images();
  const auto comm = comm::make_solo();
  const std::string packed = (folder_.path() / "data.ctpack").string();
  pipeline_.pack(open(), packed, {{8, 10, 3}, 1, {}, data::Resize::bilinear});
  const data::DataSource mapped = pipeline_.open({.spec = packed});
  EXPECT_EQ(data::pixel_sample(decode(open(), *comm), 3),
            data::pixel_sample(decode(mapped, *comm), 3));
}

TEST_F(Cache, OneImageForPredict) {
  write("a.jpg", png_of(smooth_image(10, 8)));
  std::vector<std::uint8_t> pixels(Shape{8, 10, 3}.size());
  const auto read = [&](const std::string& name, data::Exif exif = data::Exif::apply) {
    return pipeline_.read_image((folder_.path() / name).string(), {8, 10, 3},
                                data::Resize::bilinear, exif, pixels);
  };
  EXPECT_EQ(read("a.jpg").status, data::ReadStatus::ok);
  EXPECT_EQ(pixels, smooth_image(10, 8).rgb);
  write("half.jpg", with_orientation(jpeg_of(smooth_image(10, 8)), 3));
  EXPECT_TRUE(read("half.jpg", data::Exif::ignore).turned);
  auto as_stored = pixels;
  read("half.jpg");
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    std::reverse(as_stored.begin() + static_cast<std::ptrdiff_t>(i),
                 as_stored.begin() + static_cast<std::ptrdiff_t>(i) + 3);
  }
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), as_stored.rbegin())) << "turned by half";
  EXPECT_EQ(read("none.jpg").status, data::ReadStatus::unreadable);
  EXPECT_EQ(read("").status, data::ReadStatus::unreadable) << "a folder";
}

}  // namespace
}  // namespace cputrain::datasets
