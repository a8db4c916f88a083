#include "system/zip_archive.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/made_zip.h"

namespace cputrain::system {
namespace {

using testing::little;
using testing::made_zip;

std::optional<std::string> found(const std::string& archive, const std::string& name) {
  ZipFiles files(archive.size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
    if (offset + dst.size() > archive.size()) throw std::logic_error("beyond the end");
    std::memcpy(dst.data(), archive.data() + offset, dst.size());
  });
  const auto place = files.stored(name);
  if (!place) return {};
  return archive.substr(place->begin, place->size);
}

std::string refusal_of(const std::string& archive, const std::string& name = "b") {
  try {
    found(archive, name);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

const std::string kArchive = made_zip({{"a", "first"}, {"b", "the second"}, {"c/d", ""}});
/// Where the entry of b stands in the directory.
const std::size_t kEntryOfB = kArchive.find("PK\x01\x02", kArchive.find("PK\x01\x02") + 1);

std::string changed(std::size_t place, const std::string& bytes) {
  std::string archive = kArchive;
  return archive.replace(place, bytes.size(), bytes);
}

TEST(ZipArchive, GivesWhatIsStored) {
  EXPECT_EQ(found(kArchive, "a"), "first");
  EXPECT_EQ(found(kArchive, "b"), "the second");
  EXPECT_EQ(found(kArchive, "c/d"), "");
  EXPECT_EQ(found(kArchive, "d"), std::nullopt);
  EXPECT_EQ(found(kArchive + std::string(300, '.'), "b"), "the second");  // a comment
}

TEST(ZipArchive, EveryChangedByteOfAFileIsSeen) {
  const std::size_t content = kArchive.find("the second");
  for (std::size_t i = 0; i < 10; ++i) {
    std::string archive = kArchive;
    archive[content + i] ^= 1;
    EXPECT_NE(refusal_of(archive).find("is damaged (b has not the checksum"), std::string::npos);
    EXPECT_EQ(found(archive, "a"), "first");
  }
}

TEST(ZipArchive, RefusesWhatIsNotAsItIs) {
  EXPECT_NE(refusal_of(changed(kEntryOfB + 10, little(8, 2))).find("compressed"),
            std::string::npos);
  EXPECT_NE(refusal_of(changed(kEntryOfB + 8, little(1, 2))).find("encrypted"), std::string::npos);
  EXPECT_NE(refusal_of(changed(kEntryOfB + 20, std::string(8, '\xff'))).find("size is missing"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(changed(kArchive.size() - 6, std::string(4, '\xff'))).find("directory is cut"),
      std::string::npos);
}

/// Python writes sizes from 2 GB on into such a field.
TEST(ZipArchive, ReadsFieldsOfZip64) {
  const std::size_t entry = kArchive.find("PK\x01\x02");
  const std::size_t local = kArchive.find("PK\x03\x04", 1);
  const std::string other = little(7, 2) + little(3, 2) + "any";
  const auto widened = [&](const std::string& field) {
    std::string archive = kArchive;
    archive.replace(kEntryOfB + 20, 8, std::string(8, '\xff'));
    archive.replace(kEntryOfB + 30, 2, little(field.size(), 2));
    archive.replace(kEntryOfB + 42, 4, std::string(4, '\xff'));
    const std::size_t directory = kArchive.size() - 22 - entry + field.size();
    archive.replace(archive.size() - 10, 4, little(directory, 4));
    return archive.insert(kEntryOfB + 46 + 1, field);
  };
  const std::string numbers = little(10, 8) + little(10, 8) + little(local, 8);
  ASSERT_LT(entry, kEntryOfB);
  EXPECT_EQ(found(widened(little(1, 2) + little(24, 2) + numbers), "b"), "the second");
  EXPECT_EQ(found(widened(other + little(1, 2) + little(24, 2) + numbers), "b"), "the second");
  EXPECT_NE(refusal_of(widened(other)), "");
  EXPECT_NE(refusal_of(widened(little(1, 2) + little(16, 2) + numbers.substr(0, 16))), "");
  const std::string far = little(10, 8) + little(10, 8) + std::string(8, '\xff');
  EXPECT_NE(refusal_of(widened(little(1, 2) + little(24, 2) + far)), "");
}

/// More than 65,535 files, or 4 GB: the last record says that the numbers stand in another one.
TEST(ZipArchive, ReadsTheDirectoryOfZip64) {
  const std::size_t directory = kArchive.find("PK\x01\x02"), end = kArchive.size() - 22;
  const auto widened = [&](std::uint64_t count, std::uint64_t begin) {
    const std::string record = "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) +
                               little(0, 8) + little(count, 8) + little(count, 8) +
                               little(end - directory, 8) + little(begin, 8);
    const std::string locator = "PK\x06\x07" + little(0, 4) + little(end, 8) + little(1, 4);
    const std::string last = "PK\x05\x06" + little(0, 4) + std::string(12, '\xff') + little(0, 2);
    return kArchive.substr(0, end) + record + locator + last;
  };
  EXPECT_EQ(found(widened(3, directory), "b"), "the second");
  EXPECT_NE(refusal_of(widened(4, directory), "z").find("its directory is cut"), std::string::npos);
  EXPECT_NE(refusal_of(widened(std::uint64_t{1} << 60, directory)), "");
  EXPECT_NE(refusal_of(widened(3, std::uint64_t{1} << 60)), "");
}

TEST(ZipArchive, BytesBeforeItDoNotCount) {
  EXPECT_EQ(found("a program that unpacks it" + kArchive, "b"), "the second");
}

/// As torch.save() writes where it is told to compute none.
TEST(ZipArchive, AChecksumOfZeroIsNone) {
  EXPECT_EQ(found(made_zip({{"a", "first"}}, false), "a"), "first");
}

TEST(ZipArchive, FilesThatLieInOneAnotherAreNotReadOverAndOver) {
  std::string archive = made_zip({{"a", std::string(1000, '.')}, {"b", std::string(1000, '.')}});
  const std::size_t entry = archive.find("PK\x01\x02", archive.find("PK\x01\x02") + 1);
  archive.replace(entry + 42, 4, little(0, 4));
  for (const std::string name : {"a", "b"}) EXPECT_EQ(found(archive, name)->size(), 1000u);
  archive.erase(31 + 1000, 31 + 1000);  // the second one
  archive.replace(archive.size() - 6, 4, little(31 + 1000, 4));
  ZipFiles files(archive.size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
    std::memcpy(dst.data(), archive.data() + offset, dst.size());
  });
  EXPECT_EQ(files.stored("a")->size, 1000u);
  EXPECT_EQ(files.stored("a")->size, 1000u) << "which costs nothing once more";
  EXPECT_THROW(files.stored("b"), std::runtime_error);
}

TEST(ZipArchive, NamesAreBounded) {
  std::vector<std::pair<std::string, std::string>> files(65'535, {"a", ""});
  std::string archive = made_zip(files);
  EXPECT_EQ(found(archive, "a"), "");
  const std::size_t directory = archive.find("PK\x01\x02"), end = archive.size() - 22;
  const std::string entries = archive.substr(directory, end - directory);
  archive.resize(end);
  for (int i = 0; i < 3; ++i) archive += entries;
  const std::size_t bytes = archive.size() - directory, count = 4 * files.size();
  archive += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
             little(count, 8) + little(count, 8) + little(bytes, 8) + little(directory, 8);
  archive += "PK\x06\x07" + little(0, 4) + little(directory + bytes, 8) + little(1, 4);
  archive += "PK\x05\x06" + little(0, 4) + std::string(12, '\xff') + little(0, 2);
  EXPECT_NE(refusal_of(archive, "a").find("of over 200,000 files"), std::string::npos);
}

TEST(ZipArchive, TheLastOfOneNameCounts) {
  EXPECT_EQ(found(made_zip({{"a", "first"}, {"a", "last"}}), "a"), "last");
}

TEST(ZipArchive, NothingLeadsOutOfIt) {
  const std::string huge = little(0xfffffff0, 4);
  EXPECT_NE(refusal_of(changed(kEntryOfB + 20, huge + huge)), "");
  EXPECT_NE(refusal_of(changed(kEntryOfB + 20, huge)), "") << "two sizes";
  EXPECT_NE(refusal_of(changed(kEntryOfB + 42, huge)), "") << "no beginning";
  EXPECT_NE(refusal_of(changed(kEntryOfB + 42, little(3, 4))), "") << "no beginning there";
  EXPECT_NE(refusal_of(changed(kEntryOfB, "XX")), "");
  for (std::size_t size = 0; size < kArchive.size(); ++size) {
    EXPECT_NE(refusal_of(kArchive.substr(0, size)), "") << size;
  }
  const std::size_t end = kArchive.size() - 22;
  EXPECT_NE(refusal_of(changed(end + 16, huge)), "");
  EXPECT_NE(refusal_of(changed(end + 10, little(9, 2)), "z"), "") << "more files than there are";
}

}  // namespace
}  // namespace cputrain::system
