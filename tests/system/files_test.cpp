#include "system/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "system/temporary.h"
#include "tests/support/in_a_child.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

using testing::text_of;

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, WritesAtAnyPlace) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "packed";
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  AtomicFile file(path);
  file.write_at(3, bytes("end"));
  file.write("b");
  file.write_at(0, bytes("B"));
  file.write("e");
  file.commit();
  EXPECT_EQ(text_of(path), std::string("Be\0end", 6));
}

TEST(AtomicFile, AppearsWithCommitAndNotBefore) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  {
    AtomicFile file(path);
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(entries(folder.path()), 0u);  // nothing is left of a file that was given up
  AtomicFile file(path);
  file.write("who");
  file.write("le");
  file.commit();
  EXPECT_EQ(text_of(path), "whole");
  EXPECT_EQ(entries(folder.path()), 1u);
}

/// Leaves a half-written file as a process does that is killed; its temporary name.
std::filesystem::path killed_while_writing(const std::filesystem::path& path) {
  const std::size_t before = entries(path.parent_path());
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(entries(path.parent_path()), before + 1);
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(path.filename().string() + ".tmp" + std::to_string(child))) {
      return entry.path();
    }
  }
  ADD_FAILURE() << "no temporary file";
  return {};
}

TEST(AtomicFile, ClearsUpBehindAKilledProcess) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  killed_while_writing(path);
  const auto other = killed_while_writing(folder.path() / "weights.onnx");
  write_own_file(path, "whole");
  EXPECT_EQ(text_of(path), "whole");
  EXPECT_TRUE(std::filesystem::exists(other));  // of another file
  EXPECT_EQ(entries(folder.path()), 2u);
  remove_abandoned(folder.path() / "weights.onnx");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, LeavesWhatLivingProcessesWrite) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  AtomicFile mine(path);
  mine.write("mine");
  const int code = testing::in_a_child([&] {  // another process, and another file of this one
    remove_abandoned(path);
    return 3;
  });
  EXPECT_EQ(code, 3);
  write_own_file(path, "of another");
  EXPECT_EQ(text_of(path), "of another");
  mine.commit();
  EXPECT_EQ(text_of(path), "mine");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, LeavesFilesOfLikeNames) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> names{"w.tmp",     "w.tmp1",     "w.tmp-2",
                                       "w.tmp1-",   "w.tmp1-2x",  "w.tmpa-1",
                                       "xw.tmp1-2", "w.tmp1-2-3", "w2.tmp1-2"};
  for (const auto& name : names) std::ofstream(folder.path() / name) << "mine";
  std::filesystem::create_directory(folder.path() / "w.tmp3-4");
  std::filesystem::create_symlink("w.tmp", folder.path() / "w.tmp5-6");
  std::ofstream(folder.path() / "w.tmp12-34") << "abandoned";
  write_own_file(folder.path() / "w", "new");
  EXPECT_EQ(entries(folder.path()), names.size() + 3);
  EXPECT_EQ(text_of(folder.path() / "w.tmp"), "mine");
}

TEST(AtomicFile, AFileLongerThanAllowedIsAnErrorAndGoes) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  const int code = testing::in_a_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);  // as block_signals() does
    const struct rlimit limit { 1000, 1000 };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      AtomicFile file(path);
      file.write(std::string(1500, 'x'));
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.find("ulimit -f") != text.npos ? static_cast<int>(error.code()) : 1;
    }
    return 0;
  });
  EXPECT_EQ(code, 74);
  EXPECT_EQ(entries(folder.path()), 0u);
}

// As of two containers whose processes have one number.
TEST(AtomicFile, TwoOfOneNameDoNotMix) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "cells.json";
  AtomicFile first(path), second(path);
  first.write("first");
  second.write("the second");
  first.commit();
  EXPECT_EQ(text_of(path), "first");
  second.commit();
  EXPECT_EQ(text_of(path), "the second");
  EXPECT_EQ(entries(folder.path()), 1u);
}

// Between the end of writing and the rename, too, the file is somebody's.
TEST(AtomicFile, ProcessesThatClearUpTakeNoFinishedFile) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "cells.json";
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) remove_abandoned(path);
  }
  const auto again = [&](int times, const std::function<void()>& what) {
    for (int i = 0; i < times; ++i) what();
  };
  EXPECT_NO_THROW(again(3000, [&] {
    AtomicFile file(path);
    file.write("whole");
    file.commit(Durability::process);
  }));
  EXPECT_NO_THROW(again(300, [&] {
    std::filesystem::remove(path);
    if (!create_file(path, "whole")) throw std::runtime_error("it is not new");
  }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(text_of(path), "whole");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(CreateFile, OfSeveralOneSucceeds) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "machine.json";
  std::atomic<int> made = 0;
  std::string winner;
  {
    std::vector<std::jthread> tasks;
    for (int i = 0; i < 8; ++i) {
      tasks.emplace_back([&, text = std::to_string(i)] {
        if (!create_file(path, text)) return;
        ++made;
        winner = text;
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(text_of(path), winner);
  EXPECT_FALSE(create_file(path, "late"));
  EXPECT_EQ(text_of(path), winner);
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_THROW(create_file(folder.path() / "none" / "x", "text"), Error);
}

TEST(AtomicFile, KeepsTheOldFileUntilTheNewOneIsWhole) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  write_own_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(text_of(path), "old");
}

TEST(Files, WhatCannotBeWrittenIsAnOutputError) {
  const testing::TemporaryFolder folder;
  write_own_file(folder.path() / "file", "");
  const auto below_a_file = folder.path() / "file" / "x";
  const auto code = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("file/x"), std::string::npos) << error.what();
      return error.code();
    }
    return ExitCode::ok;
  };
  EXPECT_EQ(code([&] { write_own_file(below_a_file, "text"); }), ExitCode::output);
  EXPECT_EQ(code([&] { make_folder(below_a_file); }), ExitCode::output);
  EXPECT_EQ(code([&] { GrowingFile line(below_a_file); }), ExitCode::output);
}

TEST(Files, ALinkToAFolderIsTheFolderAndOneToNothingSaysSo) {
  const testing::TemporaryFolder folder;
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(folder.path() / "there", link);
  const std::string text = testing::refused(ExitCode::output, [&] { make_folder(link); });
  EXPECT_NE(text.find("is not there"), std::string::npos) << text;
  std::filesystem::create_directory(folder.path() / "there");
  make_folder(link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(Files, AFolderIsTriedAndNothingStays) {
  const testing::TemporaryFolder folder;
  const auto names = [&] {
    return std::distance(std::filesystem::recursive_directory_iterator(folder.path()), {});
  };
  try_folder(folder.path() / "a" / "b" / "");
  EXPECT_EQ(names(), 0);
  make_folder(folder.path() / "a");
  write_own_file(folder.path() / "a" / "mine", "mine");
  try_folder(folder.path() / "a" / "b");
  try_folder(folder.path() / "a");
  EXPECT_EQ(names(), 2);
  EXPECT_THROW(try_folder(folder.path() / "a" / "mine" / "b"), Error);
  EXPECT_THROW(try_folder(folder.path() / "a" / "mine"), Error);
  EXPECT_EQ(names(), 2);
}

TEST(LineFile, AFullDiskIsAnOutputErrorAndLeavesWholeLines) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "lines";
  const int code = testing::in_a_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { 1000, 1000 };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    GrowingFile file(path);
    file.write_line("text");
    try {
      file.write_line(std::string(1500, 'x'));
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  });
  EXPECT_EQ(code, 74);
  EXPECT_EQ(text_of(path), "text\n");
}

TEST(LineFile, WritesWholeLines) {
  const testing::TemporaryFolder folder;
  GrowingFile file(folder.path() / "lines");
  file.write_line("one");
  file.write_line("two");
  EXPECT_EQ(text_of(folder.path() / "lines"), "one\ntwo\n");
}

TEST(LineFile, GoesOnBehindWhatIsThereWhereItIsTold) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "lines";
  GrowingFile(path, Begin::append).write_line("one");
  GrowingFile(path, Begin::append).write_line("two");
  EXPECT_EQ(text_of(path), "one\ntwo\n");
  GrowingFile(path).write_line("anew");
  EXPECT_EQ(text_of(path), "anew\n");
}

TEST(Sync, OfWhatIsNotThereIsAnOutputError) {
  const testing::TemporaryFolder folder;
  write_own_file(folder.path() / "file", "text");
  EXPECT_NO_THROW(sync_file(folder.path() / "file"));
  EXPECT_NO_THROW(sync_folder(folder.path()));
  EXPECT_NO_THROW(sync_folder(""));
  EXPECT_THROW(sync_file(folder.path() / "none"), Error);
  EXPECT_THROW(sync_folder(folder.path() / "none"), Error);
  EXPECT_THROW(sync_folder(folder.path() / "file"), Error);
}

TEST(CacheFolder, LiesWhereTheEnvironmentSays) {
  const char* before = ::getenv("HOME");
  const std::string home = before ? before : "/";
  ::setenv("HOME", "/home/somebody", 1);
  ::setenv("XDG_CACHE_HOME", "/var/caches", 1);
  EXPECT_EQ(cache_folder(), "/var/caches/cputrain");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/cputrain");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/cputrain");
  ::unsetenv("HOME");
  EXPECT_EQ(cache_folder(), std::nullopt);
  ::setenv("HOME", home.c_str(), 1);
}

/// The folder above a link is not the one above what the link names.
TEST(AbsolutePath, FollowsLinksBeforeItGoesUp) {
  const testing::TemporaryFolder folder;
  const auto root = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories(root / "far/away");
  std::filesystem::create_directory_symlink(root / "far/away", root / "link");
  std::filesystem::create_directory_symlink("loop", root / "loop");
  EXPECT_EQ(absolute_path((root / "link/../x").string()), (root / "far/x").string());
  EXPECT_EQ(absolute_path((root / "link").string()), (root / "far/away").string());
  EXPECT_EQ(absolute_path((root / "none/../x").string()), (root / "x").string());
  EXPECT_EQ(absolute_path((root / "loop/x").string()), (root / "loop/x").string());
  EXPECT_EQ(absolute_path(""), "");
}

}  // namespace
}  // namespace cputrain::system
