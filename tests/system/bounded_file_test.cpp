#include "system/bounded_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

class BoundedFileTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }

  std::vector<std::string> lines(std::uintmax_t most, std::uintmax_t most_of_line) const {
    BoundedLines file(file_, most, most_of_line);
    std::vector<std::string> all;
    while (auto line = file.next()) all.push_back(*line);
    return all;
  }

  /// What is wrong; empty where nothing is.
  std::string trouble(std::uintmax_t most, std::uintmax_t most_of_line) const {
    try {
      lines(most, most_of_line);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "file";
};

TEST_F(BoundedFileTest, ReadsWholeFilesAndTheirLines) {
  using Lines = std::vector<std::string>;
  for (const auto& [text, expected] : {std::pair<std::string, Lines>{"", {}},
                                       {"\n", {""}},
                                       {"a\n\nbc\n", {"a", "", "bc"}},
                                       {"a\nb", {"a", "b"}},
                                       {std::string("\0\xff\n", 3), {std::string("\0\xff", 2)}}}) {
    write(text);
    EXPECT_EQ(read_bounded(file_, 100), text);
    EXPECT_EQ(lines(100, 10), expected) << text;
  }
}

TEST_F(BoundedFileTest, PiecesOfItAreNoLines) {
  const std::string line(100'000, 'x');  // more than is read at once
  write(line + "\n" + line + "\ny");
  EXPECT_EQ(lines(1'000'000, 100'000), (std::vector<std::string>{line, line, "y"}));
  EXPECT_EQ(read_bounded(file_, 200'003), line + "\n" + line + "\ny");
}

TEST_F(BoundedFileTest, RefusesMoreThanWasAllowed) {
  write("1234\n12\n");  // 8 bytes
  EXPECT_EQ(trouble(8, 4), "");
  EXPECT_EQ(trouble(7, 4), "is larger than 7 bytes");
  EXPECT_EQ(trouble(8, 3), "has a line of more than 3 bytes");
  EXPECT_THROW(read_bounded(file_, 7), std::runtime_error);
}

TEST_F(BoundedFileTest, GrowsNoFurtherThanWasAllowed) {
  write("1234\n");
  BoundedLines file(file_, 8, 4);
  std::ofstream(file_, std::ios::app) << "5678\n";
  EXPECT_THROW(file.next(), std::runtime_error);
}

TEST_F(BoundedFileTest, ReadsRegularFilesOnlyAndWaitsForNothing) {
  EXPECT_NE(trouble(8, 8).find("cannot be read"), std::string::npos);  // there is none
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(trouble(8, 8), "is no regular file");
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  EXPECT_EQ(trouble(8, 8), "is no regular file");
}

TEST_F(BoundedFileTest, ARegularFileIsReadAtAnyPlaceAndStaysTheSame) {
  write("0123456789");
  const RegularFile file(file_);
  EXPECT_EQ(file.size(), 10u);
  std::string part(4, '.');
  const auto bytes = [&part] { return std::as_writable_bytes(std::span(part)); };
  file.read_at(3, bytes());
  EXPECT_EQ(part, "3456");
  std::filesystem::rename(file_, file_.string() + ".old");
  write("another");
  file.read_at(6, bytes());
  EXPECT_EQ(part, "6789");
  EXPECT_THROW(file.read_at(7, bytes()), std::runtime_error);
  EXPECT_THROW(RegularFile("/dev/zero"), std::runtime_error);
}

}  // namespace
}  // namespace cputrain::system
