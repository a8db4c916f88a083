#include "system/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/support/in_a_child.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

namespace fs = std::filesystem;
using Kind = FileLock::Kind;

class Locks : public ::testing::Test {
 protected:
  Locks() { before_ = ::umask(022); }
  ~Locks() override { ::umask(before_); }

  mode_t mode_of(const fs::path& path) const {
    struct stat about {};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return about.st_mode & 0777;
  }
  /// The exit code of another process that tries; 0 where it gets the lock, 100 where it is taken.
  int other(Kind kind = Kind::exclusive, uid_t user = 0) const {
    return testing::in_a_child([&] {
      if (user != 0 && (::setgid(user) != 0 || ::setuid(user) != 0)) return 101;
      try {
        return FileLock::take(path_, kind) ? 0 : 100;
      } catch (const Error& error) {
        return static_cast<int>(error.code());
      }
    });
  }
  std::string refusal() const {
    return testing::refused(ExitCode::usage, [&] { FileLock::take(path_, Kind::exclusive); });
  }

  testing::TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / ".lock";
  mode_t before_;
};

TEST_F(Locks, OneHasIt) {
  const LockProbe none(path_);
  EXPECT_FALSE(none.held());
  auto lock = FileLock::take(path_, Kind::exclusive);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(LockProbe(path_).held());
  EXPECT_EQ(other(), 100);
  EXPECT_EQ(other(Kind::shared), 100);
  EXPECT_FALSE(FileLock::take(path_, Kind::shared)) << "nor another lock of this process";
  lock.reset();
  EXPECT_FALSE(LockProbe(path_).held());
  EXPECT_EQ(other(), 0);
  const auto one = FileLock::take(path_, Kind::shared), two = FileLock::take(path_, Kind::shared);
  EXPECT_TRUE(one && two);
  EXPECT_EQ(other(Kind::shared), 0);
  EXPECT_EQ(other(), 100);
}

TEST_F(Locks, IsForAllWhoMayWriteTheFolderWhateverTheUmask) {
  ::umask(077);
  const auto made_in = [&](mode_t folder) {
    EXPECT_EQ(::chmod(folder_.path().c_str(), folder), 0);
    fs::remove(path_);
    EXPECT_TRUE(FileLock::take(path_, Kind::exclusive));
    return mode_of(path_);
  };
  EXPECT_EQ(made_in(0755), 0600);
  EXPECT_EQ(made_in(0775), 0660);
  EXPECT_EQ(made_in(0777), 0666);
  // A folder that was opened to others later.
  EXPECT_EQ(made_in(0700), 0600);
  EXPECT_EQ(::chmod(folder_.path().c_str(), 0770), 0);
  EXPECT_TRUE(FileLock::take(path_, Kind::exclusive));
  EXPECT_EQ(mode_of(path_), 0660);
}

/// In a folder for all, somebody may have given a file of ours the lock's name.
TEST_F(Locks, OpensNoFileToOthersThatHasAnotherName) {
  const fs::path mine = folder_.path() / "mine";
  std::ofstream(mine) << "private";
  ASSERT_EQ(::chmod(mine.c_str(), 0600), 0);
  fs::create_hard_link(mine, path_);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 01777), 0);
  EXPECT_TRUE(FileLock::take(path_, Kind::exclusive));
  EXPECT_EQ(mode_of(mine), 0600);
}

TEST_F(Locks, WhatCannotBeLockedIsRefusedWithItsOwner) {
  std::ofstream(folder_.path() / "target");
  fs::create_symlink("target", path_);
  EXPECT_NE(refusal().find("it is a link"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("number " + std::to_string(::geteuid())), std::string::npos);
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos) << refusal();
  fs::remove(path_);
  EXPECT_EQ(testing::in_a_child([&] {
              try {
                FileLock::take(folder_.path() / "none/.lock", Kind::exclusive);
              } catch (const Error& error) {
                return static_cast<int>(error.code());
              }
              return 0;
            }),
            74);
}

TEST_F(Locks, OfWhatCannotBeLookedAtIsTakenForHeld) {
  const auto held = [&] { return LockProbe(path_).held(); };
  EXPECT_FALSE(held()) << "there is none";
  fs::create_symlink("nowhere", path_);
  EXPECT_TRUE(held());
  fs::remove(path_);
  std::ofstream(path_) << "";
  EXPECT_FALSE(held());
  EXPECT_TRUE(LockProbe(folder_.path() / "no such folder/.lock").held());
}

/// The first user's file is his own where the folder was closed, and everybody's where it is open.
TEST_F(Locks, OfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  constexpr uid_t kFirst = 1001, kSecond = 1002;
  ASSERT_EQ(::chown(folder_.path().c_str(), kFirst, kFirst), 0);
  EXPECT_EQ(other(Kind::exclusive, kFirst), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  EXPECT_EQ(other(Kind::exclusive, kSecond), 2) << "it cannot be opened";
  EXPECT_EQ(other(Kind::shared, kSecond), 2);
  EXPECT_EQ(other(Kind::exclusive, kFirst), 0) << "which opens it to others";
  EXPECT_EQ(other(Kind::exclusive, kSecond), 0);
  fs::remove(path_);
  EXPECT_EQ(other(Kind::exclusive, kSecond), 0);
  EXPECT_EQ(other(Kind::exclusive, kFirst), 0);
  const auto held = FileLock::take(path_, Kind::exclusive);
  EXPECT_EQ(other(Kind::exclusive, kSecond), 100);
}

}  // namespace
}  // namespace cputrain::system
