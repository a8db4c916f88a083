#include "checkpoint/folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

#include "tests/checkpoint/made_up.h"
#include "tests/support/forbidden_call.h"
#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint64_t> steps(const fs::path& run) {
  std::vector<std::uint64_t> steps;
  for (const Found& found : list(run)) {
    EXPECT_EQ(found.folder, folder_of(run, found.step));
    steps.push_back(found.step);
  }
  return steps;
}

TEST(Checkpoints, NamesHaveNineDigitsOrMore) {
  EXPECT_EQ(folder_of("runs/a", 40), "runs/a/ckpt-000000040");
  EXPECT_EQ(folder_of("a", 1234567890123), "a/ckpt-1234567890123");
  EXPECT_EQ(step_of("ckpt-000000040"), 40u);
  EXPECT_EQ(step_of("ckpt-18446744073709551615"), UINT64_MAX);
  for (const char* name :
       {"ckpt-", "ckpt-40", "ckpt-0000000040", "ckpt-000000040x", "ckpt-+00000040",
        "ckpt-18446744073709551616", "ckpt-00000004 ", "Ckpt-000000040", ""}) {
    EXPECT_EQ(step_of(name), std::nullopt) << name;
  }
}

TEST(Checkpoints, AreListedTheNewestFirst) {
  const testing::TemporaryFolder run;
  for (const char* name : {"ckpt-000000040", "ckpt-1000000000", "ckpt-000000005", "ckpt-6",
                           ".ckpt-000000007.tmp1-2", "ckpt-000000008.tmp1-2", "train"}) {
    fs::create_directory(run.path() / name);
  }
  put(run.path() / "ckpt-000000009", "a file");
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{1000000000, 40, 5}));
  EXPECT_TRUE(list(run.path() / "none").empty());
  EXPECT_TRUE(list(run.path() / "ckpt-000000009").empty());
}

TEST(Prune, KeepsTheNewestAndTakesWhatAResumeGaveUp) {
  const testing::TemporaryFolder run;
  for (const int step : {5, 10, 15, 20, 25}) make(run.path(), static_cast<std::uint64_t>(step));
  put(run.path() / "metrics.jsonl", "");
  prune(run.path(), 20, 2);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{20, 15}));
  prune(run.path(), 20, 5);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{20, 15}));
  EXPECT_EQ(fault_of(folder_of(run.path(), 15)), "");
  EXPECT_EQ(entries(run.path()), 3u);
  prune(run.path(), 20, 1);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{20}));
  prune(run.path() / "none", 20, 1);
}

TEST(Prune, RemovesALinkAndNotWhatItLeadsTo) {
  const testing::TemporaryFolder run, other;
  const fs::path there = make(other.path(), 5);
  fs::create_directory_symlink(there, folder_of(run.path(), 5));
  make(run.path(), 10);
  prune(run.path(), 10, 1);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{10}));
  EXPECT_EQ(fault_of(there), "");
}

// Root may write everywhere, so the test gives that up.
TEST(Prune, WhatCannotBeRemovedStays) {
  const testing::TemporaryFolder run;
  make(run.path(), 5);
  make(run.path(), 10);
  ::chmod(run.path().c_str(), 0555);
  const int code = testing::in_a_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 3;
    prune(run.path(), 10, 1);
    return 0;
  });
  ::chmod(run.path().c_str(), 0755);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{10, 5}));
}

// Where a file system cannot exchange or move names, a kill or a full disk leaves one without.
TEST(Abandoned, TheNewestWholeOneGetsItsNameBackWhereNoneIsNewer) {
  for (const std::uint64_t other : {0, 3, 6, 8}) {  // under its name
    const testing::TemporaryFolder run;
    for (const int step : {5, 8}) {
      fs::rename(make(run.path(), static_cast<std::uint64_t>(step)),
                 run.path() / fmt::format(".ckpt-00000000{}.tmp1-2", step));
    }
    put(run.path() / ".ckpt-000000008.tmp1-2" / kModelName, "damaged");
    if (other > 0) make(run.path(), other);
    give_name_back(run.path());
    remove_abandoned(run.path());
    const std::vector<std::uint64_t> expected = other == 0   ? std::vector<std::uint64_t>{5}
                                                : other == 3 ? std::vector<std::uint64_t>{5, 3}
                                                             : std::vector{other};
    EXPECT_EQ(steps(run.path()), expected);
    EXPECT_EQ(entries(run.path()), expected.size());
    for (const Found& found : list(run.path())) EXPECT_EQ(fault_of(found.folder), "");
  }
}

TEST(Abandoned, AWholeOneTakesThePlaceOfHalfACopyOfIt) {
  const testing::TemporaryFolder run;
  make(run.path(), 3);
  fs::rename(make(run.path(), 5, "whole"), run.path() / ".ckpt-000000005.tmp1-2");
  fs::create_directory(folder_of(run.path(), 5));
  put(folder_of(run.path(), 5) / kModelName, "half");
  give_name_back(run.path());
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{5, 3}));
  EXPECT_EQ(fault_of(folder_of(run.path(), 5)), "");
  EXPECT_EQ(text_of(folder_of(run.path(), 5) / kStateName), "whole");
}

TEST(SetAside, ADamagedOneStaysUnderAnotherName) {
  const testing::TemporaryFolder run;
  for (const char* name : {"damaged-ckpt-000000005", "damaged-ckpt-000000005-2"}) {
    make(run.path(), 5);
    EXPECT_EQ(set_aside({folder_of(run.path(), 5), 5}), run.path() / name);
    EXPECT_EQ(fault_of(run.path() / name), "");  // nothing of it has changed
  }
  prune(run.path(), 100, 0);
  EXPECT_EQ(entries(run.path()), 2u);
  EXPECT_TRUE(list(run.path()).empty());
}

TEST(SetAside, AFolderThatCannotBeRenamedIsCopiedAndAnOldOneRemoved) {
  const testing::TemporaryFolder run;
  for (const int step : {3, 5, 8}) make(run.path(), static_cast<std::uint64_t>(step));
  put(folder_of(run.path(), 8) / kModelName, "damaged");
  const int code = testing::in_a_child([&] {
    if (!testing::forbid(SYS_rename, EXDEV)) return testing::kNoSeccomp;
    prune(run.path(), 8, 2);
    fs::create_directory(folder_of(run.path(), 9));  // without MANIFEST
    set_aside({folder_of(run.path(), 9), 9});
    return set_aside({folder_of(run.path(), 8), 8}) == run.path() / "damaged-ckpt-000000008" ? 0
                                                                                             : 1;
  });
  if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(steps(run.path()), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(entries(run.path()), 3u);
  EXPECT_EQ(text_of(run.path() / "damaged-ckpt-000000008" / kModelName), "damaged");
  EXPECT_EQ(entries(run.path() / "damaged-ckpt-000000008"), entries(folder_of(run.path(), 5)));
}

/// Leaves a half-written checkpoint as a process does that is killed.
void killed_while_writing(const fs::path& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(run, 30);
    put(writer.folder() / kModelName, "half");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(Abandoned, FoldersOfDeadWritersGoAndOthersStay) {
  const testing::TemporaryFolder run;
  killed_while_writing(run.path());
  EXPECT_EQ(entries(run.path()), 1u);
  EXPECT_TRUE(list(run.path()).empty());
  Writer alive(run.path(), 30);
  fill(alive.folder(), "{}");
  fs::create_directory(run.path() / ".ckpt-000000007.tmp1-2");  // empty: just made, or nearly gone
  fs::create_directory(run.path() / ".ckpt-000000008.tmp1-2");
  put(run.path() / ".ckpt-000000008.tmp1-2" / kModelName, "the rest of what was removed");
  const std::vector<std::string> others{"ckpt-000000003", ".ckpt-3.tmp1-2", ".ckpt-000000003.tmp1",
                                        "a.tmp1-2"};
  for (const auto& name : others) fs::create_directory(run.path() / name);
  fs::create_directory_symlink("ckpt-000000003", run.path() / ".ckpt-000000009.tmp1-2");
  const int code = testing::in_a_child([&] {  // of another process
    remove_abandoned(run.path());
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(entries(run.path()), others.size() + 2);
  alive.commit();
  EXPECT_EQ(fault_of(folder_of(run.path(), 30)), "");
  remove_abandoned(run.path() / "none");
}

// Between making a folder and locking it, too, it may be taken for abandoned.
TEST(Abandoned, WritersAndProcessesThatClearUpGoTogether) {
  const testing::TemporaryFolder run;
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) remove_abandoned(run.path());
  }
  for (std::uint64_t step = 1; step <= 60; ++step) {
    EXPECT_NO_THROW(make(run.path(), step));
    EXPECT_EQ(fault_of(folder_of(run.path(), step)), "");
    prune(run.path(), step, 2);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  remove_abandoned(run.path());
  EXPECT_EQ(entries(run.path()), 2u);
}

}  // namespace
}  // namespace cputrain::checkpoint
