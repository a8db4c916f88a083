// Where files on disk in place of memory may lie, and why not.
#include "system/scratch/scratch_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <numeric>

#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

constexpr std::uint64_t kLarge = std::uint64_t{1} << 50;

class Scratch : public ::testing::Test {
 protected:
  Scratch() {
    if (const char* now = ::getenv("TMPDIR")) before_ = now;
  }
  ~Scratch() override { before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR"); }
  static void choose(const std::string& folder) { ::setenv("TMPDIR", folder.c_str(), 1); }

  testing::TemporaryFolder folder_;

 private:
  std::optional<std::string> before_;
};

TEST_F(Scratch, LiesInTmpdirWhereThatHasRoom) {
  choose(folder_.path().string());
  EXPECT_EQ(folder_with_room(1000), folder_.path());
  EXPECT_EQ(why_not_tmpdir(1000), "");
}

TEST_F(Scratch, WithoutTmpdirThereIsNoReasonAgainstIt) {
  ::unsetenv("TMPDIR");
  EXPECT_EQ(why_not_tmpdir(kLarge), "");
}

TEST_F(Scratch, AFolderThatIsNotThereIsPassedOver) {
  const std::string missing = folder_.path() / "missing";
  choose(missing);
  EXPECT_NE(folder_with_room(1000), missing);
  EXPECT_EQ(why_not_tmpdir(1000), missing + " cannot be written to (No such file or directory)");
}

TEST_F(Scratch, AFolderWithoutRoomSaysHowMuchItHas) {
  choose(folder_.path().string());
  EXPECT_EQ(folder_with_room(kLarge), "");
  const std::string why = why_not_tmpdir(kLarge);
  EXPECT_TRUE(why.starts_with(folder_.path().string() + " has ")) << why;
  EXPECT_TRUE(why.ends_with(" free of 1.18e+03 TB")) << why;
  const std::string all = why_no_folder(kLarge);
  for (const char* folder : {"/var/tmp", "/tmp", "the working folder"}) {
    EXPECT_NE(all.find(folder), std::string::npos) << all;
  }
  EXPECT_TRUE(all.starts_with(why)) << all;
}

TEST_F(Scratch, AFolderOfMemoryIsNoDisk) {
  const std::string memory = "/dev/shm";
  choose(memory);
  if (why_not_tmpdir(1000, /*on_disk=*/true).empty()) GTEST_SKIP() << memory << " is on disk here";
  EXPECT_EQ(why_not_tmpdir(1000, /*on_disk=*/true), memory + " lies in memory");
  EXPECT_NE(folder_with_room(1000, /*on_disk=*/true), memory);
}

TEST_F(Scratch, ALimitOfFilesIsNamed) {
  const int code = testing::in_a_child([] {
    const struct rlimit limit { 8192, RLIM_INFINITY };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (folder_with_room(8192).empty() || !folder_with_room(8193).empty()) return 1;
    return why_no_folder(8193) == "'ulimit -f' lets no file be longer than 8.19 kB" ? 3 : 2;
  });
  EXPECT_EQ(code, 3);
}

TEST_F(Scratch, AFileHoldsWhatIsWrittenAndHasNoName) {
  ScratchFile file(folder_.path().string(), 10'000);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  for (const std::byte value : file.bytes()) ASSERT_EQ(value, std::byte{0});
  file.bytes().back() = std::byte{9};
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.bytes().data()), 10'000);
  read_ahead(bytes.subspan(5000));
  wait_for_pages(bytes.subspan(5000));
  EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), 0), 9);
}

}  // namespace
}  // namespace cputrain::system
