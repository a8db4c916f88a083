#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>

#include "core/error.h"
#include "system/files.h"
#include "tests/checkpoint/made_up.h"
#include "tests/support/forbidden_call.h"
#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The message of an Error(output), "" where there is none.
std::string failure(const std::function<void()>& what) {
  try {
    what();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::output) << error.what();
    return error.what();
  }
}

TEST(Writer, AppearsWithCommitAndNotBefore) {
  const testing::TemporaryFolder run;
  {
    Writer writer(run.path(), 12);
    fill(writer.folder(), "half");
    EXPECT_TRUE(list(run.path()).empty());
  }
  EXPECT_EQ(entries(run.path()), 0u);  // nothing is left of one that was given up
  Writer writer(run.path(), 12);
  fill(writer.folder(), "whole");
  fs::create_hard_link(writer.folder() / kModelName, writer.folder() / kBestName);
  writer.commit();
  EXPECT_EQ(entries(run.path()), 1u);
  const fs::path folder = run.path() / "ckpt-000000012";
  EXPECT_EQ(fault_of(folder), "");
  EXPECT_EQ(entries(folder), 6u);
  EXPECT_EQ(text_of(folder / kStateName), "whole");
}

void replaces_an_existing_one(const fs::path& run) {
  for (const char* state : {"first", "second", "third"}) {
    const fs::path folder = make(run, 12, state);
    EXPECT_EQ(text_of(folder / kStateName), state);
    EXPECT_EQ(fault_of(folder), "");
    EXPECT_EQ(entries(run), 1u);
  }
  put(run / "ckpt-000000013", "a file");
  EXPECT_EQ(fault_of(make(run, 13)), "");
  EXPECT_EQ(entries(run), 2u);
}

TEST(Writer, TakesThePlaceOfAnOlderOne) {
  const testing::TemporaryFolder run;
  replaces_an_existing_one(run.path());
}

// As on a file system that cannot exchange two names: renameat2() with flags is an error.
TEST(Writer, TakesThePlaceWhereNamesCannotBeExchanged) {
  const testing::TemporaryFolder run;
  const int code = testing::in_a_child([&] {
    if (!testing::forbid(SYS_renameat2, EINVAL, {{4, RENAME_EXCHANGE}})) return testing::kNoSeccomp;
    const char* path = run.path().c_str();
    if (::renameat2(AT_FDCWD, path, AT_FDCWD, path, RENAME_EXCHANGE) == 0) return 3;
    replaces_an_existing_one(run.path());
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
}

TEST(Writer, AnErrorOfTheDiskIsAnOutputErrorAndLeavesTheOlderOne) {
  const testing::TemporaryFolder run;
  const fs::path folder = make(run.path(), 5, "older");
  for (const long call : {SYS_fsync, SYS_write, SYS_renameat2}) {
    const int code = testing::in_a_child([&] {
      if (!testing::forbid(call, EIO)) return testing::kNoSeccomp;
      const std::string message = failure([&] { make(run.path(), 5, "newer"); });
      return message.find("Input/output error") == message.npos ? 1 : 0;
    });
    if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(code, 0) << call;
    EXPECT_EQ(fault_of(folder), "") << call;
    EXPECT_EQ(text_of(folder / kStateName), "older") << call;
    EXPECT_EQ(entries(run.path()), 1u) << call;
  }
}

/// Folders of a lower layer of overlayfs have no other name than theirs (EXDEV).
TEST(Writer, AFileSystemWithoutRenamesOfFoldersIsNoError) {
  for (const int error : {EXDEV, ENOSYS}) {
    const testing::TemporaryFolder run;
    const int code = testing::in_a_child([&] {
      if (!testing::forbid(SYS_rename, error) || !testing::forbid(SYS_renameat2, error)) {
        return testing::kNoSeccomp;
      }
      replaces_an_existing_one(run.path());
      return ::testing::Test::HasFailure() ? 1 : 0;
    });
    if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(code, 0);
    EXPECT_EQ(entries(run.path()), 2u);
    EXPECT_EQ(fault_of(folder_of(run.path(), 12)), "");
  }
}

/// The last one that there is does not go before another is whole.
TEST(Writer, ACopyThatFailsIsLeftUnderTheNameThatItHad) {
  const testing::TemporaryFolder run;
  make(run.path(), 3, "another");
  make(run.path(), 5, "older");
  const int code = testing::in_a_child([&] {
    Writer writer(run.path(), 5);
    fill(writer.folder(), "newer");
    const bool forbidden = testing::forbid(SYS_rename, EXDEV) &&
                           testing::forbid(SYS_renameat2, EXDEV) &&
                           testing::forbid(SYS_mkdir, EDQUOT);
    if (!forbidden) return testing::kNoSeccomp;
    return failure([&] { writer.commit(); }).find("free space") == std::string::npos ? 1 : 0;
  });
  if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(list(run.path()).size(), 1u);
  give_name_back(run.path());
  EXPECT_EQ(list(run.path()).size(), 2u);
  EXPECT_EQ(fault_of(folder_of(run.path(), 5)), "");
  EXPECT_EQ(text_of(folder_of(run.path(), 5) / kStateName), "newer");
}

TEST(Writer, NothingStaysWhereFilesRunOut) {
  const testing::TemporaryFolder disk;
  if (::mount("none", disk.path().c_str(), "tmpfs", 0, "nr_inodes=20") != 0) {
    GTEST_SKIP() << "may not mount";
  }
  make(disk.path(), 5, "kept");
  const auto before = entries(disk.path());
  const auto write = [&] {
    Writer writer(disk.path(), 6);
    for (const char* name : {kModelName, kOptimizerName, kRanksName, kStateName}) {
      system::write_own_file(writer.folder() / name, "some");
    }
    writer.commit();
  };
  std::size_t others = 0;
  for (bool full = false; !full; full = !fs::exists(disk.path() / std::to_string(others))) {
    put(disk.path() / std::to_string(++others), "");
  }
  --others;
  for (int left = 0; left < 6; ++left) {  // files that it can have: a folder and five are needed
    const std::string message = failure(write);
    EXPECT_NE(message.find("can hold no more files (df -i)"), std::string::npos) << message;
    EXPECT_EQ(entries(disk.path()), before + others);
    fs::remove(disk.path() / std::to_string(others--));
  }
  EXPECT_EQ(failure(write), "");
  EXPECT_EQ(fault_of(folder_of(disk.path(), 5)), "");
  ::umount(disk.path().c_str());
}

TEST(Writer, AFolderThatIsGoneIsAnOutputError) {
  const testing::TemporaryFolder parent;
  const fs::path run = parent.path() / "run";
  EXPECT_NE(failure([&] { Writer(run, 1); }).find("run/.ckpt-000000001"), std::string::npos);
  fs::create_directory(run);
  Writer writer(run, 1);
  fill(writer.folder(), "{}");
  fs::remove_all(run);
  EXPECT_NE(failure([&] { writer.commit(); }), "");
  EXPECT_FALSE(fs::exists(run));
}

TEST(Writer, AFolderThatMayNotBeWrittenIsAnOutputError) {
  const testing::TemporaryFolder run;
  make(run.path(), 5);
  ::chmod(run.path().c_str(), 0555);
  const int code = testing::in_a_child([&] {  // root may write everywhere
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 3;
    const std::string message = failure([&] { make(run.path(), 6); });
    return message.find("Permission denied") == message.npos ? 1 : 0;
  });
  ::chmod(run.path().c_str(), 0755);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(entries(run.path()), 1u);
}

TEST(Writer, AFullDiskLosesNothing) {
  const testing::TemporaryFolder disk;
  if (::mount("none", disk.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "may not mount";
  }
  make(disk.path(), 5, "kept");
  const std::string filler(1 << 20, 'x');
  put(disk.path() / "filler", filler);
  EXPECT_LT(text_of(disk.path() / "filler").size(), filler.size());
  EXPECT_NE(failure([&] { make(disk.path(), 6); }).find("No space left"), std::string::npos);
  EXPECT_NE(failure([&] { make(disk.path(), 5); }).find("No space left"), std::string::npos);
  EXPECT_EQ(entries(disk.path()), 2u);
  EXPECT_EQ(fault_of(folder_of(disk.path(), 5)), "");
  EXPECT_EQ(text_of(folder_of(disk.path(), 5) / kStateName), "kept");
  fs::remove(disk.path() / "filler");
  EXPECT_EQ(failure([&] { make(disk.path(), 6); }), "");
  ::umount(disk.path().c_str());
}

TEST(Writer, OnlyFilesWithPlainNamesCanBeInOne) {
  const testing::TemporaryFolder run;
  const auto refused = [&](const std::function<void(const fs::path&)>& add) {
    Writer writer(run.path(), 1);
    fill(writer.folder(), "{}");
    add(writer.folder());
    EXPECT_THROW(writer.commit(), Error);
  };
  refused([](const fs::path& folder) { fs::create_directory(folder / "train"); });
  refused([](const fs::path& folder) { put(folder / "two words", "x"); });
  refused([](const fs::path& folder) { put(folder / ".state.json.tmp1-2", "x"); });
  EXPECT_EQ(entries(run.path()), 0u);
}

}  // namespace
}  // namespace cputrain::checkpoint
