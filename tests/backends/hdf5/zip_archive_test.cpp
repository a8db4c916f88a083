#include "backends/hdf5/zip_archive.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cputrain::hdf5 {
namespace {

std::string little(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

/// The format's checksum, bit by bit.
std::uint32_t checksum(const std::string& content) {
  std::uint32_t rest = 0xffffffff;
  for (const char byte : content) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
  }
  return ~rest;
}

/// One by the format's description, nothing compressed.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive, directory;
  for (const auto& [name, content] : files) {
    const std::string common = little(0, 8) + little(checksum(content), 4) +
                               little(content.size(), 4) + little(content.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(0, 10) +
                 little(archive.size(), 4) + name;
    archive += "PK\x03\x04" + little(20, 2) + common + name + content;
  }
  return archive + directory + "PK\x05\x06" + little(0, 4) + little(files.size(), 2) +
         little(files.size(), 2) + little(directory.size(), 4) + little(archive.size(), 4) +
         little(0, 2);
}

std::optional<std::string> found(std::string archive, const std::string& name) {
  const auto member = stored_member(std::as_writable_bytes(std::span(archive)), name);
  if (!member) return {};
  return std::string(reinterpret_cast<const char*>(member->data()), member->size());
}

std::string refusal_of(const std::string& archive, const std::string& name = "b") {
  try {
    found(archive, name);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

const std::string kArchive = zip_of({{"a", "first"}, {"b", "the second"}, {"c/d", ""}});
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
  EXPECT_NE(refusal_of(changed(kArchive.size() - 6, std::string(4, '\xff'))).find("4 GB"),
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

TEST(ZipArchive, TheLastOfOneNameCounts) {
  EXPECT_EQ(found(zip_of({{"a", "first"}, {"a", "last"}}), "a"), "last");
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
}  // namespace cputrain::hdf5
