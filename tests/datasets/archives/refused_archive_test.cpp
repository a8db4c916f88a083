// Archives that were made to do harm, or are damaged: refused, or their files are.
#include <gtest/gtest.h>

#include "datasets/archives/archive_entry.h"
#include "datasets/decode/limits.h"
#include "tests/datasets/archives/made_archives.h"
#include "tests/datasets/open_fixture.h"
#include "tests/support/refusal.h"

namespace cputrain::datasets {
namespace {

class RefusedArchives : public OpenTest {
 protected:
  std::vector<ArchivedFile> good() const {
    return {{"x/cat/1.png", image_}, {"x/dog/1.png", image_}, {"x/dog/2.png", image_}};
  }
  std::vector<ArchivedFile> good_and(const ArchivedFile& other) const {
    auto files = good();
    files.push_back(other);
    return files;
  }

  void expect(const Bytes& archive, const std::string& words) const {
    write_bytes(folder_.path() / "a.zip", archive);  // the content says what it is
    const std::string text = error(path("a.zip"));
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in: " << text;
    EXPECT_NE(text.find("a.zip"), std::string::npos) << text;
  }
  /// As zip and as tar archive, the latter plain and compressed.
  void expect_all(const std::vector<ArchivedFile>& files, const std::string& words) const {
    expect(zip_of(files), words);
    if (!reads_tar_) return;
    expect(tar_of(files), words);
    expect(gzip_of(tar_of(files)), words);
  }
  /// Its last image is damaged, and the others are not.
  void expect_damaged(const Bytes& archive, const std::string& words) const {
    write_bytes(folder_.path() / "a.zip", archive);
    const data::DataSource source = open(path("a.zip"), 0);
    Bytes pixels(48);
    for (std::size_t i = 0; i < source.dataset->size(); ++i) {
      const auto result = source.dataset->read(i, {4, 4, 3}, data::Resize::bilinear, pixels);
      const bool last = i + 1 == source.dataset->size();
      EXPECT_EQ(result.status, last ? data::ReadStatus::unreadable : data::ReadStatus::ok);
      if (last) {
        EXPECT_NE(result.detail.find(words), std::string::npos) << result.detail;
      }
    }
  }

  bool reads_tar_ = !archive_library().empty();
};

TEST_F(RefusedArchives, PathsThatLeadOut) {
  for (const char* name : {"../1.png", "x/../../1.png", "x/..", ".."}) {
    expect_all(good_and({name, image_}), "it leads out of the archive");
  }
  expect_all(good_and({"/etc/1.png", image_}), "it begins at the root");
  std::string deep = "x";
  for (int i = 0; i < 300; ++i) deep += "/y";
  expect(zip_of(good_and({deep, image_})), "it has too many folders");
  expect(zip_of(good_and({"x/" + std::string(5000, 'y'), image_})), "it is too long");
  expect(zip_of(good_and({std::string("x/\0.png", 7), image_})), "it has a zero byte");
}

TEST_F(RefusedArchives, TwoFilesOfOnePath) {
  expect_all(good_and({"x/cat/1.png", image_}), "holds 'x/cat/1.png' (so does");
  expect_all(good_and({"x/./cat//1.png", image_}), "holds 'x/cat/1.png' (so does");
}

TEST_F(RefusedArchives, EncryptedOnes) {
  ArchivedFile secret{"x/dog/3.png", image_};
  secret.flags = 1;
  expect(zip_of(good_and(secret)), "is encrypted ('x/dog/3.png' is)");
}

TEST_F(RefusedArchives, EmptyOnes) {
  expect(Bytes{}, "");
  expect(zip_of({}), "no images in");
  if (reads_tar_) expect(tar_of({}), "no images in");
  expect_all({{"notes.txt", image_}, {"x/", {}}}, "no images in");
}

TEST_F(RefusedArchives, CutAnywhere) {
  const Bytes whole = zip_of(good());
  for (std::size_t size = 1; size < whole.size(); size += 7) {
    write_bytes(folder_.path() / "a.zip", prefix(whole, size));
    EXPECT_NE(error(path("a.zip")), "") << size;
  }
  if (!reads_tar_) return;
  const Bytes tar = tar_of(good()), packed = gzip_of(tar);
  for (std::size_t size = 1; size < packed.size(); size += 7) {
    write_bytes(folder_.path() / "a.tgz", prefix(packed, size));
    EXPECT_NE(error(path("a.tgz")), "") << size;
  }
  // Half of the last image is there.
  write_bytes(folder_.path() / "a.tar", prefix(tar, tar.size() - 1024 - 512 + image_.size() / 2));
  const std::string text = error(path("a.tar"));
  EXPECT_NE(text.find("cannot be read as an archive: it ends before the end of 'x/dog/2.png'"),
            std::string::npos)
      << text;
}

TEST_F(RefusedArchives, WrongNumbers) {
  const Bytes zip = zip_of(good());
  const std::size_t end = zip.size() - 22;
  expect(patched(zip, end + 10, 0xffff, 2), "its directory is cut");
  expect(patched(zip, end + 12, 0xffff, 2), "its directory is cut");
  expect(patched(zip, end + 16, 0xffff, 2), "its directory is cut");
  expect(patched(zip, end + 4, 1, 1), "one of several parts of a zip archive");
  ArchivedFile grown{"x/dog/3.png", image_};
  grown.grows = 1;
  expect(zip_of(good_and(grown)), "'x/dog/3.png' has two sizes");
  ArchivedFile packed = grown;
  packed.deflated = true;
  expect_damaged(zip_of(good_and(packed)), "not as many as it says");
  packed.grows = 0xffffffff;  // one less
  expect_damaged(zip_of(good_and(packed)), "not as many as it says");
}

TEST_F(RefusedArchives, WrongChecksumsAndPlaces) {
  const ArchivedFile last{"x/dog/3.png", image_};
  const Bytes zip = zip_of(good_and(last));
  const std::size_t entry = zip.size() - 22 - 46 - last.name.size();
  expect_damaged(patched(zip, entry + 16, 0, 4), "checksum");
  expect_damaged(patched(zip, entry + 42, 0x01000000, 4), "has no beginning");  // at 1
  expect(patched(zip, entry + 42, 0xffffff7f, 4), "it ends before the end of 'x/dog/3.png'");
  const std::size_t header =
      zip.size() - 22 - 4 * 46 - (4 * last.name.size()) - image_.size() - last.name.size() - 30;
  expect_damaged(patched(zip, header, 0, 4), "has no beginning");
  expect_damaged(patched(zip, header + 26, 0xffff, 2), "a file is cut");
}

TEST_F(RefusedArchives, DamagedLabels) {
  const ArchivedFile label{"a.cls", bytes_of("7")};
  const Bytes zip = zip_of({{"a.png", image_}, label});
  const std::size_t entry = zip.size() - 22 - 46 - label.name.size();
  expect(patched(zip, entry + 16, 0, 4), "a.zip/a.cls' cannot be read: it has not the checksum");
}

TEST_F(RefusedArchives, MoreThanMemoryHasRoomFor) {
  if (!reads_tar_) return;
  write_bytes(folder_.path() / "a.tgz", gzip_of(tar_of(good())));
  const auto open_with = [&](std::size_t memory) {
    return open_data({.spec = path("a.tgz"), .validation_split = 0, .memory = memory});
  };
  const std::size_t held = 3 * image_.size();  // they may take three quarters of it
  EXPECT_EQ(open_with(held * 4 / 3 + 4).dataset->size(), 3u);
  const std::string text = testing::refused(ExitCode::data, [&] { open_with(held); });
  EXPECT_NE(text.find("there is memory for no more"), std::string::npos) << text;
}

TEST_F(RefusedArchives, OtherMethodsThanDeflate) {
  ArchivedFile other{"x/dog/3.png", image_};
  Bytes zip = zip_of(good_and(other));
  const std::size_t entry = zip.size() - 22 - 46 - other.name.size();
  expect(patched(zip, entry + 10, 14, 1), "'x/dog/3.png' packed by a method that is not read");
}

TEST_F(RefusedArchives, Bombs) {
  const std::string words = "unpacked (that is over 100 times its size";
  std::vector<ArchivedFile> files = good();
  for (int i = 0; i < 5; ++i) {
    ArchivedFile bomb{"x/cat/bomb" + std::to_string(i) + ".png", image_, true};
    bomb.grows = 60u << 20;
    files.push_back(bomb);
  }
  expect(zip_of(files), words);
  ArchivedFile text{"x/cat/notes.txt", {}};
  text.grows = 300u << 20;
  expect(zip_of(good_and(text)), words);
  if (reads_tar_) expect(gzip_of(tar_of(good_and(text))), words);
}

TEST_F(RefusedArchives, LargeFilesAreDamagedOnes) {
  const Bytes large((std::size_t{64} << 20) + 1);
  std::vector<Bytes> archives{zip_of(good_and({"x/dog/9.png", large, true}))};
  if (reads_tar_) archives.push_back(gzip_of(tar_of(good_and({"x/dog/9.png", large}))));
  for (const Bytes& archive : archives) {
    write_bytes(folder_.path() / "a.zip", archive);
    const data::DataSource source = open(path("a.zip"), 0);
    EXPECT_EQ(source.dataset->inspect(3).result.status, data::ReadStatus::too_large);
    EXPECT_EQ(source.dataset->inspect(2).result.status, data::ReadStatus::ok);
  }
}

TEST_F(RefusedArchives, WhatIsNone) {
  write_bytes(folder_.path() / "a.tar", bytes_of("no archive at all"));
  EXPECT_NE(error(path("a.tar")), "");
}

}  // namespace
}  // namespace cputrain::datasets
