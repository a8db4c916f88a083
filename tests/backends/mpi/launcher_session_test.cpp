// Sessions of launchers that no rank has told of, below a folder that stands for /tmp.
#include "backends/mpi/launcher_session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "../../support/temporary_folder.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;

/// The number of a process that has ended.
pid_t dead_process() {
  const pid_t id = ::fork();
  if (id == 0) ::_exit(0);
  ::waitpid(id, nullptr, 0);
  return id;
}

class LauncherSessions : public ::testing::Test {
 protected:
  static std::string host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
  }
  static std::string user() { return std::to_string(::geteuid()); }

  fs::path top(const std::string& kind = "ompi", const std::string& of = host()) const {
    return base() / (kind + "." + of + "." + user());
  }
  static fs::path session(const fs::path& top, const std::string& name, pid_t number,
                          const std::string& end = "") {
    const fs::path path = top / (name + "." + std::to_string(number) + end);
    fs::create_directories(path / "0" / "0");
    std::ofstream(path / "contact.txt") << "left";
    return path;
  }
  const fs::path& base() const { return folder_.path(); }

  /// From a container, nobody can tell what a folder of the machine's is of.
  void SetUp() override {
    struct stat own {
    }, root{};
    ASSERT_EQ(::stat(base().c_str(), &own) + ::stat("/", &root), 0);
    if (own.st_dev != root.st_dev) GTEST_SKIP() << "temporary files lie on a file system of theirs";
  }

  testing::TemporaryFolder folder_, elsewhere_;
};

TEST_F(LauncherSessions, OfLaunchersThatAreGoneAreRemovedAndThoseOfTheLivingStay) {
  const std::string domain = host().substr(0, host().find('.'));
  for (const auto& [kind, name] : {std::pair{"ompi", "pid"}, std::pair{"prte", "dvm"}}) {
    const fs::path dead = session(top(kind), name, dead_process());
    const fs::path living = session(top(kind), name, ::getpid());
    const fs::path without_domain = session(top(kind, domain), name, dead_process());
    remove_dead_sessions(base());
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_FALSE(fs::exists(without_domain));
    EXPECT_TRUE(fs::exists(living / "contact.txt"));
    fs::remove_all(living);
    session(top(kind), name, dead_process());
    remove_dead_sessions(base());
    EXPECT_FALSE(fs::exists(top(kind)));  // with its last session
  }
}

TEST_F(LauncherSessions, ThatAreOneFolderAreKnownByTheNumberInItsName) {
  const auto of = [&](const char* program, const std::string& name, pid_t number) {
    return session(base(), program + ("." + name), number, "." + user());
  };
  const std::string domain = host().substr(0, host().find('.'));
  const std::vector<fs::path> dead{of("prterun", host(), dead_process()),
                                   of("prted", host(), dead_process()),
                                   of("prte", domain, dead_process())};
  const std::vector<fs::path> stay{of("prterun", host(), ::getpid()),
                                   of("prterun", "another", dead_process()),
                                   of("prterun", host() + ".more", dead_process()),
                                   of("mine", host(), dead_process()),
                                   session(base(), "prterun." + host(), dead_process(), ".4711"),
                                   session(base(), "prterun." + host(), dead_process())};
  remove_dead_sessions(base());
  for (const fs::path& path : dead) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : stay) EXPECT_TRUE(fs::exists(path / "contact.txt")) << path;
}

// Containers share a folder with their machine and have other numbers for their processes.
TEST_F(LauncherSessions, OfLaunchersInContainersStay) {
  const pid_t inner = dead_process();
  const fs::path path = session(top(), "pid", inner), process = elsewhere_.path() / "17";
  fs::create_directories(process);
  std::ofstream(process / "status") << "Name:\tmpirun\nNSpid:\t17\t" << inner << "\nNSsid:\t1\n";
  remove_dead_sessions(base(), elsewhere_.path());
  EXPECT_TRUE(fs::exists(path / "contact.txt"));
  std::ofstream(process / "status") << "Name:\tmpirun\nNSpid:\t17\t1\nNSsid:\t" << inner << "\n";
  remove_dead_sessions(base(), elsewhere_.path());
  EXPECT_FALSE(fs::exists(path));
}

// On other hosts it has the number of a job: whose, nobody can tell.
TEST_F(LauncherSessions, NamedAfterAJobGoWhereTheyAreEmptyAndOld) {
  const fs::path full = session(top(), "jf", 17), fresh = top() / "jf.18", old = top() / "jf.19";
  for (const fs::path& path : {fresh, old}) fs::create_directories(path);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const fs::path& path : {full, old}) fs::last_write_time(path, long_ago);
  remove_dead_sessions(base());
  EXPECT_TRUE(fs::exists(full / "contact.txt"));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(LauncherSessions, WhatNoLauncherOfThisMachineMadeStays) {
  testing::TemporaryFolder elsewhere;
  const pid_t dead = dead_process();
  const std::string number = std::to_string(dead);
  std::vector<fs::path> stay{session(top("ompi", "another"), "pid", dead),
                             session(base() / ("ompi." + host()), "pid", dead),
                             session(base() / ("mine." + host() + "." + user()), "pid", dead),
                             session(top(), "precious", dead),
                             session(top(), "pid.x", dead),
                             session(top(), "dvm.-", dead)};
  const fs::path real = session(elsewhere.path() / "real", "pid", dead);
  fs::create_directory_symlink(real, top() / ("pid." + std::to_string(dead_process())));
  stay.push_back(real);
  const fs::path linked = session(elsewhere.path() / "top", "dvm", dead);
  fs::create_directory_symlink(elsewhere.path() / "top", top("prte"));
  stay.push_back(linked);
  remove_dead_sessions(base());
  remove_dead_sessions(base() / "nothing");
  for (const fs::path& path : stay) EXPECT_TRUE(fs::exists(path / "contact.txt")) << path;
}

TEST_F(LauncherSessions, OfOtherUsersStay) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's folder takes root to make";
  const fs::path theirs = session(top(), "pid", dead_process());
  ASSERT_EQ(::chown(theirs.c_str(), 12345, 12345), 0);
  const fs::path within = session(top("prte"), "dvm", dead_process());
  ASSERT_EQ(::chown(top("prte").c_str(), 12345, 12345), 0);
  remove_dead_sessions(base());
  EXPECT_TRUE(fs::exists(theirs / "contact.txt"));
  EXPECT_TRUE(fs::exists(within / "contact.txt"));
}

TEST(SessionBases, AreThoseThatTheEnvironmentNames) {
  std::map<std::string, std::string> variables;
  const auto read = [&] {
    return session_bases([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  using Paths = std::vector<fs::path>;
  EXPECT_EQ(read(), Paths{"/tmp"});
  variables = {{"TMPDIR", "/scratch/7"},
               {"TMP", "not/absolute"},
               {"TEMP", "/tmp"},
               {"PMIX_SERVER_TMPDIR", "/fast/ompi.host.0/pid.17"},
               {"OMPI_MCA_orte_tmpdir_base", "/given"}};
  EXPECT_EQ(read(), (Paths{"/tmp", "/given", "/scratch/7", "/fast"}));
  const std::string user = std::to_string(::geteuid());
  variables = {{"PMIX_SERVER_TMPDIR", "/fast/prterun.host.17." + user}};
  EXPECT_EQ(read(), (Paths{"/tmp", "/fast"}));
}

}  // namespace
}  // namespace cputrain::mpi
