// What file systems lack is done without, and what failed is an error.
#include "system/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "system/file_lock.h"
#include "system/files.h"
#include "system/scratch/scratch_file.h"
#include "tests/support/forbidden_call.h"
#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

namespace fs = std::filesystem;
using Kind = FileLock::Kind;
using testing::text_of;

constexpr int kNotSupported = 524;  // as the kernel's own file systems answer
constexpr int kLacking[] = {EINVAL, ENOSYS, EOPNOTSUPP, ENOTTY, kNotSupported};

class FileSystem : public ::testing::Test {
 protected:
  /// In a child, which has that call no more: what `work` throws, or "". Its standard error is in
  /// said().
  template <class Work>
  std::string without(long call, int error, const Work& work,
                      std::optional<testing::Argument> argument = std::nullopt) {
    fs::remove(said_);
    const fs::path thrown = folder_.path() / "thrown";
    fs::remove(thrown);
    const int code = testing::in_a_child([&] {
      const int file = ::open(said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      const int message = ::open(thrown.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (!testing::forbid(call, error, argument)) return testing::kNoSeccomp;
      ::dup2(file, STDERR_FILENO);
      try {
        work();
      } catch (const Error& failure) {
        const std::string text = failure.what();
        return ::write(message, text.data(), text.size()) > 0 ? 0 : 1;
      }
      return 0;
    });
    no_seccomp_ = code == testing::kNoSeccomp;
    if (!no_seccomp_) {
      EXPECT_EQ(code, 0);
    }
    return text_of(thrown);
  }
  std::string said() const { return text_of(said_); }
  std::size_t times_said(const std::string& words) const {
    std::size_t times = 0;
    const std::string text = said();
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++times;
    return times;
  }

  testing::TemporaryFolder folder_, elsewhere_;
  const fs::path said_ = elsewhere_.path() / "said", path_ = folder_.path() / "file";
  bool no_seccomp_ = false;
};

TEST_F(FileSystem, WithoutFsyncFilesAreWrittenAndALineSaysWhatIsLostOnce) {
  for (const int error : kLacking) {
    EXPECT_EQ(without(SYS_fsync, error,
                      [&] {
                        write_own_file(path_, "first");
                        write_own_file(path_, "second");
                      }),
              "");
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(text_of(path_), "second");
    EXPECT_EQ(times_said("has no fsync of files ("), 1u) << said();
    EXPECT_EQ(times_said("has no fsync of folders ("), 1u) << said();
    EXPECT_EQ(times_said("\n"), 2u) << said();
    EXPECT_EQ(times_said("Unknown error"), 0u) << said();
  }
}

TEST_F(FileSystem, SpaceIsBlamedWhereItIsMissing) {
  for (const int error : {EIO, EROFS, ENOSPC, EDQUOT, ESTALE, ENOMEM}) {
    const std::string message =
        without(SYS_fsync, error, [&] { write_own_file(path_, "not whole"); });
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(message.find("free space") != message.npos, error == ENOSPC || error == EDQUOT)
        << message;
    EXPECT_NE(message.find("cannot write " + path_.string()), message.npos) << message;
    EXPECT_FALSE(fs::exists(path_));
  }
}

TEST_F(FileSystem, WithoutRenamesFilesAreWrittenInTheirPlace) {
  for (const int error : {EXDEV, ENOSYS, EOPNOTSUPP}) {
    write_own_file(path_, "a longer text that was there");
    EXPECT_EQ(without(SYS_rename, error, [&] { write_own_file(path_, "new"); }), "");
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(text_of(path_), "new");
    EXPECT_EQ(times_said("has no rename of files ("), 1u) << said();
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2);  // and `thrown`
  }
}

/// The older file has gone by then, so that the newer one is all that there is.
TEST_F(FileSystem, WhereACopyInItsPlaceFailsTheWholeFileIsKeptAndNamed) {
  for (const bool replaces : {true, false}) {
    fs::remove(path_);
    if (replaces) write_own_file(path_, "old");
    const std::string message = without(SYS_rename, EXDEV, [&] {
      if (!testing::forbid(SYS_fsync, ENOSPC)) fail(ExitCode::failed, "no seccomp");
      AtomicFile file(path_);
      file.write("new");
      file.commit(Durability::process);  // waits for no disk: the copy alone does
    });
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_NE(message.find("free space"), message.npos) << message;
    std::vector<fs::path> kept;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().filename() != "thrown") kept.push_back(entry.path());
    }
    ASSERT_EQ(kept.size(), replaces ? 1u : 0u) << message;
    if (!replaces) continue;
    EXPECT_NE(message.find("the whole file is " + kept[0].string()), message.npos) << message;
    EXPECT_EQ(text_of(kept[0]), "new");
    fs::remove(kept[0]);
  }
}

TEST_F(FileSystem, WithoutLinksANewFileStillLeavesAnotherAlone) {
  for (const int error : {EPERM, EMLINK, EXDEV, EACCES, ENOSYS, kNotSupported}) {
    fs::remove(path_);
    EXPECT_EQ(without(SYS_link, error,
                      [&] {
                        const bool first = create_file(path_, "first");
                        AtomicFile late(path_);
                        late.write("second");
                        if (late.commit_new() || !first) fail(ExitCode::failed, "both are new");
                      }),
              "");
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(text_of(path_), "first");
  }
}

TEST_F(FileSystem, WhereNothingCanBeRemovedAFileIsEmptied) {
  write_own_file(path_, "a log that was there");
  const auto append = [&] { GrowingFile(path_).append("new"); };
  EXPECT_EQ(without(SYS_unlink, ENOSYS, append), "");
  if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(text_of(path_), "new");
  // Somebody may have given another file of ours that name, too.
  fs::create_hard_link(path_, folder_.path() / "mine");
  EXPECT_NE(without(SYS_unlink, ENOSYS, append).find("File exists"), std::string::npos);
  EXPECT_EQ(text_of(path_), "new");
}

TEST_F(FileSystem, AFileThatCannotBeCutIsWrittenAnew) {
  write_own_file(path_, "kept and cut");
  EXPECT_EQ(without(SYS_ftruncate, EPERM, [&] { cut_file(path_, 4); }), "");
  if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(text_of(path_), "kept");
  EXPECT_NE(without(SYS_ftruncate, EIO, [&] { cut_file(path_, 2); }), "");
  EXPECT_EQ(text_of(path_), "kept");
}

TEST_F(FileSystem, WithoutLocksALineSaysSo) {
  const testing::Argument set_lock{1, F_OFD_SETLK};
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP, ENOTTY, kNotSupported, ENOLCK}) {
    const auto take_twice = [&] {
      const auto one = FileLock::take(path_, Kind::exclusive);
      const auto other = FileLock::take(path_, Kind::shared);
      if (!one || !other) fail(ExitCode::failed, "no lock");
    };
    EXPECT_EQ(without(SYS_fcntl, error, take_twice, set_lock), "");
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(times_said("has no locks ("), 1u) << said();
  }
}

TEST_F(FileSystem, ALockThatFailsIsRefusedWithoutAdviceForOthersFiles) {
  const testing::Argument set_lock{1, F_OFD_SETLK};
  const std::string message = without(
      SYS_fcntl, EIO, [&] { FileLock::take(path_, Kind::exclusive); }, set_lock);
  if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
  EXPECT_NE(message.find("Input/output error"), message.npos) << message;
  EXPECT_EQ(message.find("chmod"), message.npos) << message;
}

/// FUSE tells its server of an unlock, and of no descriptor that is closed.
TEST_F(FileSystem, ALockIsGivenBackWhateverElseHoldsTheFileOpen) {
  const int mine = ::open(path_.c_str(), O_RDWR | O_CREAT, 0644), twin = ::dup(mine);
  ASSERT_EQ(try_lock(mine, Kind::exclusive), 0);
  close_locked(mine);
  EXPECT_FALSE(LockProbe(path_).held());
  ::close(twin);
}

TEST_F(FileSystem, WithoutFallocateRoomIsTakenByZeros) {
  constexpr std::uint64_t kBytes = (std::uint64_t{1} << 20) + 4097;
  for (const int error : {ENODEV, EOPNOTSUPP, ENOSYS, EINVAL, kNotSupported}) {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    const auto take = [&] {
      const std::string failure = reserve(file, kBytes);
      if (!failure.empty()) fail(ExitCode::failed, failure);
    };
    EXPECT_EQ(without(SYS_fallocate, error, take), "");
    if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
    struct stat about {};
    ASSERT_EQ(::fstat(file, &about), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(about.st_size), kBytes);
    EXPECT_GE(static_cast<std::uint64_t>(about.st_blocks) * 512, kBytes);
    ::close(file);
  }
}

TEST_F(FileSystem, AFolderWhoseFilesCannotBeMappedIsPassedOver) {
  ::setenv("TMPDIR", folder_.path().c_str(), 1);
  const std::string why = without(
      SYS_mmap, ENODEV,
      [] {
        const std::string told = why_not_tmpdir(1000);
        if (!told.empty()) fail(ExitCode::usage, told);
      },
      testing::Argument{3, MAP_SHARED});
  ::unsetenv("TMPDIR");
  if (no_seccomp_) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(why, folder_.path().string() + " has no files that can be mapped (No such device)");
}

}  // namespace
}  // namespace cputrain::system
