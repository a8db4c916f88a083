// Links, pipes and devices in the place of a file that is to be written.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "system/child_process.h"
#include "system/files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

namespace fs = std::filesystem;
using testing::text_of;

class FileKinds : public ::testing::Test {
 protected:
  FileKinds() { std::ofstream(target_) << "mine"; }

  fs::path pipe() const {
    const fs::path path = folder_.path() / "pipe";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  bool is_pipe(const fs::path& path) const {
    return fs::symlink_status(path).type() == fs::file_type::fifo;
  }

  testing::TemporaryFolder folder_;
  const fs::path target_ = folder_.path() / "target", name_ = folder_.path() / "name";
};

struct Writer {
  const char* name;
  std::function<void(const fs::path&)> write;
};

/// All that write a file of ours.
const std::vector<Writer>& own_writers() {
  static const std::vector<Writer> writers{
      {"whole", [](const fs::path& path) { write_own_file(path, "new"); }},
      {"durable",
       [](const fs::path& path) {
         AtomicFile file(path);
         file.write("new");
         file.commit();
       }},
      {"growing", [](const fs::path& path) { GrowingFile(path).append("new"); }},
      {"appending", [](const fs::path& path) { GrowingFile(path, Begin::append).append("new"); }},
      {"output of a child", [](const fs::path& path) {
         ChildProcess child({"printf", "new"}, {}, path);
         while (!child.exit_code()) std::this_thread::yield();
       }}};
  return writers;
}

TEST_F(FileKinds, AFileOfOursTakesThePlaceOfALink) {
  for (const Writer& writer : own_writers()) {
    for (const char* to : {"target", "nowhere"}) {
      fs::remove(name_);
      fs::create_symlink(to, name_);
      writer.write(name_);
      EXPECT_TRUE(is_own_file(name_)) << writer.name;
      EXPECT_EQ(text_of(name_), "new") << writer.name;
      EXPECT_EQ(text_of(target_), "mine") << writer.name;
      EXPECT_FALSE(fs::exists(folder_.path() / "nowhere")) << writer.name;
    }
  }
}

TEST_F(FileKinds, AFileOfOursTakesThePlaceOfAPipeThatNobodyReads) {
  for (const Writer& writer : own_writers()) {
    const fs::path path = pipe();
    writer.write(path);
    EXPECT_TRUE(is_own_file(path)) << writer.name;
    EXPECT_EQ(text_of(path), "new") << writer.name;
    fs::remove(path);
  }
}

/// A name of a file that two folders have is not written through either.
TEST_F(FileKinds, AFileOfOursThatBeginsAnewLeavesAHardLink) {
  fs::create_hard_link(target_, name_);
  GrowingFile(name_).append("new");
  EXPECT_EQ(text_of(name_), "new");
  EXPECT_EQ(text_of(target_), "mine");
}

TEST_F(FileKinds, AFileOfOursNeverTakesThePlaceOfADevice) {
  if (::mknod(name_.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "needs the right to make a device";
  }
  for (const Writer& writer : own_writers()) {
    EXPECT_THROW(writer.write(name_), Error) << writer.name;
    EXPECT_EQ(fs::symlink_status(name_).type(), fs::file_type::character) << writer.name;
  }
}

TEST_F(FileKinds, AFolderOfOursIsNotThatOfALink) {
  fs::create_directory(folder_.path() / "other");
  fs::create_directory_symlink("other", name_);
  make_own_folder(name_);
  EXPECT_EQ(fs::symlink_status(name_).type(), fs::file_type::directory);
  std::ofstream(name_ / "x") << "x";
  make_own_folder(name_);
  EXPECT_TRUE(fs::exists(name_ / "x"));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "other"));
}

TEST_F(FileKinds, ALinkThatAPersonNamedLeadsToWhatIsMeant) {
  fs::create_symlink("target", name_);
  fs::create_symlink(name_, folder_.path() / "outer");
  write_given_file(folder_.path() / "outer", "new");
  EXPECT_TRUE(fs::is_symlink(name_));
  EXPECT_EQ(text_of(target_), "new");
  EXPECT_EQ(replaceable_file(folder_.path() / "outer"), target_);

  fs::create_symlink("not yet", folder_.path() / "dangling");
  write_given_file(folder_.path() / "dangling", "new");
  EXPECT_EQ(text_of(folder_.path() / "not yet"), "new");

  fs::create_symlink("loop", folder_.path() / "loop");
  EXPECT_THROW(write_given_file(folder_.path() / "loop", "new"), Error);
}

TEST_F(FileKinds, APipeThatAPersonNamedIsWrittenTo) {
  const fs::path path = pipe();
  fs::create_symlink("pipe", name_);
  for (const fs::path& named : {path, name_}) {
    EXPECT_FALSE(replaceable_file(named));
    std::string read;
    std::jthread reader([&] { read = text_of(path); });
    const auto file = open_given_file(named);
    file->write("piece by ");
    file->write("piece");
    file->commit(Durability::disk);
    reader.join();
    EXPECT_EQ(read, "piece by piece");
    EXPECT_TRUE(is_pipe(path));
  }
}

TEST_F(FileKinds, ADeviceThatAPersonNamedIsWrittenTo) {
  for (const unsigned minor : {3U, 7U}) {  // null, full
    fs::remove(name_);
    if (::mknod(name_.c_str(), S_IFCHR | 0666, makedev(1, minor)) != 0) {
      GTEST_SKIP() << "needs the right to make a device";
    }
    if (std::ofstream(name_).fail()) GTEST_SKIP() << "devices do not work in this folder";
    const bool full = minor == 7;
    if (full) {
      EXPECT_THROW(write_given_file(name_, "new"), Error);
    } else {
      EXPECT_NO_THROW(write_given_file(name_, "new"));
    }
    EXPECT_EQ(fs::symlink_status(name_).type(), fs::file_type::character);
  }
}

/// As /dev/stdout is, which a shell may have sent into a file.
TEST_F(FileKinds, AnOpenFileOfThisProcessIsWrittenToWhereItIs) {
  const int descriptor = ::open(target_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(descriptor), name_);
  EXPECT_FALSE(replaceable_file(name_));
  write_given_file(name_, " and more");
  EXPECT_EQ(text_of(target_), "mine and more");
  EXPECT_EQ(::write(descriptor, "!", 1), 1) << "it is still open";
  EXPECT_EQ(text_of(target_), "mine and more!");
  ::close(descriptor);
  EXPECT_THROW(write_given_file(name_, "x"), Error);
}

TEST_F(FileKinds, OfSeveralProcessesEachHasANewFolderOfItsOwn) {
  const fs::path first = folder_.path() / "runs/run";
  std::vector<fs::path> made(12);
  {
    std::vector<std::jthread> threads;
    for (fs::path& path : made) threads.emplace_back([&] { path = make_new_folder(first); });
  }
  std::ranges::sort(made);
  EXPECT_EQ(std::ranges::adjacent_find(made), made.end());
  EXPECT_EQ(made.front(), first);
  for (int number = 2; number <= 12; ++number) {
    EXPECT_TRUE(fs::is_directory(first.string() + "-" + std::to_string(number))) << number;
  }
  EXPECT_THROW(make_new_folder(target_ / "x"), Error);
}

}  // namespace
}  // namespace cputrain::system
