#include "logging/tensorboard.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>

#include "core/error.h"
#include "core/hash.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::logging {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The check value that the catalogues of CRCs give, and TensorFlow's mask of it.
TEST(Crc32c, HasThePublishedCheckValue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
}

// Bytes that TensorFlow writes for these events; every real file begins 18 00 ... a3 7f 4b 22.
TEST(EventRecords, HaveTheGoldenBytes) {
  EXPECT_EQ(hex(version_record(1.0)),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
  const std::array loss{std::pair<std::string, double>("epoch_loss", 0.5)};
  EXPECT_EQ(
      hex(scalar_record(2.0, 5, loss)),
      "200000000000000029eda95009000000000000004010052a130a110a0a65706f63685f6c6f7373150000003f"
      "be15dcaa");
}

using testing::text_of;

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  return files;
}

TEST(EventFile, HoldsEveryRecordAsSoonAsItIsWritten) {
  const testing::TemporaryFolder folder;
  const auto file = new_event_file(folder.path() / "train", "host");
  const auto files = files_in(folder.path() / "train");
  ASSERT_EQ(files.size(), 1u);
  const std::string begun = text_of(files[0]);
  EXPECT_EQ(hex(begun).substr(0, 24), "1800000000000000a37f4b22");
  file->append(
      scalar_record(2.0, 5, std::array{std::pair<std::string, double>("epoch_loss", 0.5)}));
  const std::string grown = text_of(files[0]);
  EXPECT_EQ(grown.substr(0, begun.size()), begun);
  EXPECT_EQ(grown.size(), begun.size() + 48);  // the golden record's length
}

TEST(EventFile, IsANewOneEachTimeUnlessOldOnesAreRemoved) {
  const testing::TemporaryFolder folder;
  std::vector<std::unique_ptr<system::GrowingFile>> files;
  for (int i = 0; i < 3; ++i) files.push_back(new_event_file(folder.path(), "host"));
  EXPECT_EQ(files_in(folder.path()).size(), 3u);
  std::ofstream(folder.path() / "other") << "kept";
  remove_event_files(folder.path());
  EXPECT_EQ(files_in(folder.path()).size(), 1u);
  remove_event_files(folder.path() / "missing");
}

TEST(EventFile, SaysWhereItCannotBeWritten) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "train") << "a file";
  const std::string text = testing::refused(
      ExitCode::output, [&] { new_event_file(folder.path() / "train", "host")->append(""); });
  EXPECT_NE(text.find("train"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::logging
