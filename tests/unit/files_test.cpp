#include "core/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/cache_folder.h"
#include "core/error.h"
#include "support/temporary_folder.h"

namespace cputrain {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, WritesAtAnyPlace) {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
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

// As of two containers whose processes have one number.
TEST(AtomicFile, TwoOfOneNameDoNotMix) {
  const TemporaryFolder folder;
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

TEST(CreateFile, OfSeveralOneSucceeds) {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(text_of(path), "old");
}

TEST(Files, WhatCannotBeWrittenIsAnOutputError) {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", "");
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
  EXPECT_EQ(code([&] { write_file(below_a_file, "text"); }), ExitCode::output);
  EXPECT_EQ(code([&] { make_folder(below_a_file); }), ExitCode::output);
  EXPECT_EQ(code([&] { LineFile line(below_a_file); }), ExitCode::output);
}

// /dev/full accepts an open and fails every write: a disk without space.
TEST(LineFile, AFullDiskIsAnOutputError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  LineFile file("/dev/full");
  EXPECT_THROW(file.write_line("text"), Error);
}

TEST(LineFile, WritesWholeLines) {
  const TemporaryFolder folder;
  LineFile file(folder.path() / "lines");
  file.write_line("one");
  file.write_line("two");
  EXPECT_EQ(text_of(folder.path() / "lines"), "one\ntwo\n");
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

}  // namespace
}  // namespace cputrain
