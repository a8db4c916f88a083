// What processes left of files and folders that they were writing, and what only looks like it.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include "checkpoint/folder.h"
#include "system/files.h"
#include "tests/checkpoint/made_up.h"
#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace {

/// The type that file systems say to have; 0: their own.
long type_to_say = 0;

}  // namespace

extern "C" int fstatfs(int descriptor, struct statfs* about) noexcept {
  using Call = int (*)(int, struct statfs*);
  static const auto of_system = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "fstatfs"));
  const int result = of_system(descriptor, about);
  if (type_to_say != 0) about->f_type = type_to_say;
  return result;
}

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A run folder with the temporary files and folders of one process.
class Leftovers : public ::testing::Test {
 protected:
  ~Leftovers() override { type_to_say = 0; }

  /// A file, a checkpoint half written and one half removed, of a process that was killed.
  void leave() {
    const pid_t child = ::fork();
    if (child == 0) {
      write_and([] { ::kill(::getpid(), SIGKILL); });
      ::_exit(1);
    }
    ::waitpid(child, nullptr, 0);
    fs::create_directory(removed());
    put(removed() / kModelName, "the rest");
    ASSERT_EQ(entries(run_.path()), 3u);
  }
  void write_and(const std::function<void()>& then) const {
    system::AtomicFile file(run_.path() / kFile);
    file.write("half");
    Writer writer(run_.path(), 30);
    put(writer.folder() / kModelName, "half");
    then();
  }
  fs::path removed() const { return run_.path() / ".ckpt-000000008.tmp1-2"; }
  std::size_t left_by_another_start() const {
    system::remove_abandoned(run_.path() / kFile);
    remove_abandoned(run_.path());
    return entries(run_.path());
  }
  void make_old(std::chrono::hours age) const {
    for (const auto& entry : fs::recursive_directory_iterator(run_.path())) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - age);
    }
  }

  static constexpr const char* kFile = "metrics.jsonl";
  testing::TemporaryFolder run_;
};

TEST_F(Leftovers, OfTheDeadGoAtOnceWhereThisMachineAloneHasTheFiles) {
  leave();
  for (const long type : {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC}) {
    type_to_say = type;
    EXPECT_EQ(left_by_another_start(), 0u);
    type_to_say = 0;
    leave();
  }
}

// A free lock may be held on another machine: NFS with its locks kept local, FUSE, 9p, SMB, Lustre.
TEST_F(Leftovers, OnFileSystemsOfSeveralMachinesTheyStayForADay) {
  for (const long type : {long{NFS_SUPER_MAGIC}, 0x65735546L, long{V9FS_MAGIC}, 0xff534d42L,
                          0x0bd00bd0L, 0x47504653L}) {
    type_to_say = type;
    leave();
    EXPECT_EQ(left_by_another_start(), 3u);
    make_old(std::chrono::hours(23));
    EXPECT_EQ(left_by_another_start(), 3u);
    make_old(std::chrono::hours(25));
    EXPECT_EQ(left_by_another_start(), 0u);
  }
}

TEST_F(Leftovers, AWholeCheckpointGetsItsNameBackOnSuchFileSystems) {
  type_to_say = NFS_SUPER_MAGIC;
  fs::rename(make(run_.path(), 5), run_.path() / ".ckpt-000000005.tmp1-2");
  give_name_back(run_.path());
  EXPECT_EQ(list(run_.path()).size(), 1u);
}

TEST_F(Leftovers, OfAnotherUserStay) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's file takes root to make";
  leave();
  for (const auto& entry : fs::recursive_directory_iterator(run_.path())) {
    ASSERT_EQ(::chown(entry.path().c_str(), 12345, 12345), 0);
  }
  EXPECT_EQ(left_by_another_start(), 3u);
  make_old(std::chrono::hours(25));
  EXPECT_EQ(left_by_another_start(), 3u);
}

// As by a start in a container, for which the number in the name is nobody's.
TEST_F(Leftovers, WhatIsBeingWrittenStaysWhereItsProcessIsNotSeen) {
  int code = 0;
  write_and([&] {
    code = testing::in_a_pid_namespace([&] { return left_by_another_start() == 2 ? 0 : 1; });
  });
  if (code == testing::kNoNamespaces) GTEST_SKIP() << "namespaces take root to make";
  EXPECT_EQ(code, 0);
}

TEST_F(Leftovers, TheNumberInTheNameProvesNothing) {
  std::ofstream(run_.path() / (std::string(kFile) + ".tmp" + std::to_string(::getpid()) + "-1"));
  EXPECT_EQ(left_by_another_start(), 0u);  // it was another process's, which is gone
}

TEST_F(Leftovers, LinksAndPipesStay) {
  put(run_.path() / "precious", "mine");
  fs::create_symlink("precious", run_.path() / (std::string(kFile) + ".tmp1-2"));
  ASSERT_EQ(::mkfifo((run_.path() / (std::string(kFile) + ".tmp3-4")).c_str(), 0600), 0);
  const int reader = ::open((run_.path() / (std::string(kFile) + ".tmp3-4")).c_str(),
                            O_RDONLY | O_NONBLOCK);  // so that it can be opened
  EXPECT_EQ(left_by_another_start(), 3u);
  ::close(reader);
}

}  // namespace
}  // namespace cputrain::checkpoint
