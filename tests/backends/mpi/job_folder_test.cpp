// Folders of jobs, below a folder that stands for /dev/shm. Processes are children of this one,
// since a lock is a process's.
#include "backends/mpi/job_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../../support/forbidden_call.h"
#include "../../support/in_a_child.h"
#include "../../support/temporary_folder.h"
#include "system/placement/launcher.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;

/// A child that says one word when it has begun and then waits to be killed.
class Child {
 public:
  /// `work` returns whether it succeeded; what it made lives until the child is killed.
  explicit Child(const std::function<bool(const std::function<void()>& wait)>& work) {
    int ends[2] = {};
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    id_ = ::fork();
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto wait = [&] {
        if (::write(ends[1], "y", 1) != 1) ::_exit(1);
        for (;;) ::pause();
      };
      work(wait);
      ::_exit(1);
    }
    ::close(ends[1]);
    char word = 0;
    began_ = ::read(ends[0], &word, 1) == 1;
    ::close(ends[0]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool began() const { return began_; }
  pid_t id() const { return id_; }
  void kill() {
    if (id_ > 0) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
    id_ = -1;
  }

 private:
  pid_t id_ = -1;
  bool began_ = false;
};

class JobFolders : public ::testing::Test {
 protected:
  /// A rank of the job that lives until it is killed.
  std::unique_ptr<Child> rank(const std::string& of, const std::string& file = "") {
    return std::make_unique<Child>([&](const std::function<void()>& wait) {
      const auto folder = JobFolder::join(base(), of);
      if (!folder) return false;
      if (!file.empty()) std::ofstream(folder->path() / file) << "a segment";
      wait();
      return true;
    });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(base()))
      found.push_back(entry.path().filename());
    std::ranges::sort(found);
    return found;
  }
  std::vector<std::string> names_with(const std::string& file) const {
    std::vector<std::string> found = names();
    std::erase_if(found,
                  [&](const std::string& name) { return !fs::exists(base() / name / file); });
    return found;
  }
  fs::path private_folder(const std::string& name) const {
    const fs::path path = base() / (prefix() + name);
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  static std::string prefix() { return "cputrain-" + std::to_string(::geteuid()) + "-"; }
  const fs::path& base() const { return folder_.path(); }

  testing::TemporaryFolder folder_;
};

TEST_F(JobFolders, RanksOfAJobShareOneThatTheLastRemoves) {
  auto first = JobFolder::join(base(), "a");
  ASSERT_TRUE(first);
  const fs::path path = first->path();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  auto second = JobFolder::join(base(), "a");
  auto other = JobFolder::join(base(), "b");
  ASSERT_TRUE(second && other);
  EXPECT_EQ(second->path(), path);
  EXPECT_NE(other->path(), path);
  std::ofstream(path / "segment") << "left";
  first.reset();
  EXPECT_TRUE(fs::exists(path / "segment"));
  second.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(other->path()));
}

TEST_F(JobFolders, OfManyRanksThatLeaveAtOnceSomebodyRemovesIt) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> ranks;
    for (int i = 0; i < 8; ++i)
      ranks.emplace_back([&] { EXPECT_TRUE(JobFolder::join(base(), "a")); });
    for (std::thread& one : ranks) one.join();
    EXPECT_EQ(names(), std::vector<std::string>{});
  }
}

TEST_F(JobFolders, ThoseOfTheDeadAreRemovedAndThoseOfTheLivingStay) {
  const auto living = rank("living", "segment");
  const auto dead = rank("dead", "segment"), half_dead = rank("living");
  ASSERT_TRUE(living->began() && dead->began() && half_dead->began());
  ASSERT_EQ(names().size(), 2u);
  remove_dead_jobs(base());
  EXPECT_EQ(names().size(), 2u);
  dead->kill();
  half_dead->kill();
  remove_dead_jobs(base());
  ASSERT_EQ(names().size(), 1u);
  EXPECT_TRUE(fs::exists(base() / names()[0] / "segment"));
  living->kill();
  remove_dead_jobs(base());
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Nor by a start in a container that shares /dev/shm and does not see the machine's processes.
TEST_F(JobFolders, ThoseOfTheLivingStayWhereTheirProcessesAreNotSeen) {
  const auto living = rank("living", "segment"), dead = rank("dead", "segment");
  ASSERT_TRUE(living->began() && dead->began());
  dead->kill();
  const int code = testing::in_a_pid_namespace([&] {
    remove_dead_jobs(base());
    return 0;
  });
  if (code == testing::kNoNamespaces) GTEST_SKIP() << "namespaces take root to make";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(names_with("segment").size(), 1u);
  EXPECT_EQ(names().size(), 1u);
}

// Killed between the steps of making or removing one.
TEST_F(JobFolders, BegunAndHalfRemovedOnesAreRemoved) {
  private_folder("1");
  std::ofstream(private_folder("2") / "lock");
  remove_dead_jobs(base());
  EXPECT_EQ(names(), std::vector<std::string>{});
}

TEST_F(JobFolders, WhatLacksTheMarkOfThisProgramStays) {
  std::ofstream(private_folder("1") / "data") << "mine";
  std::ofstream(private_folder("2") / "data") << "mine";
  std::ofstream(base() / (prefix() + "2") / "lock");
  std::ofstream(private_folder("3") / "lock") << "another program's";
  ASSERT_TRUE(rank("dead", "segment")->began());
  const fs::path dead = base() / names_with("segment").at(0);
  for (const char* name : {"cafe-7", "notes", ""}) {
    fs::copy(dead, base() / (prefix() + name), fs::copy_options::recursive);
  }
  fs::remove_all(dead);
  const auto before = names();
  ASSERT_EQ(before.size(), 6u);
  remove_dead_jobs(base());
  EXPECT_EQ(names(), before);
  EXPECT_EQ(names_with("segment").size(), 3u);
  EXPECT_EQ(names_with("data").size(), 2u);
}

TEST_F(JobFolders, WhatOnlyLooksLikeOneStays) {
  testing::TemporaryFolder elsewhere;
  fs::create_directory(elsewhere.path() / "precious");
  fs::permissions(elsewhere.path() / "precious", fs::perms::owner_all);
  fs::create_directory_symlink(elsewhere.path() / "precious", base() / (prefix() + "link"));
  std::ofstream(base() / (prefix() + "file")) << "a file";
  fs::create_directory(base() / (prefix() + "open"));  // anybody may have put something there
  fs::permissions(base() / (prefix() + "open"), fs::perms::all);
  fs::create_directory(base() / "cputrain-other");
  const auto before = names();
  remove_dead_jobs(base());
  EXPECT_EQ(names(), before);
  EXPECT_TRUE(fs::exists(elsewhere.path() / "precious"));
  EXPECT_FALSE(fs::exists(elsewhere.path() / "precious" / "lock"));
}

TEST_F(JobFolders, NobodyJoinsOneThatIsALinkOrOpenToOthers) {
  const fs::path path = JobFolder::join(base(), "a").value().path();
  ASSERT_FALSE(fs::exists(path));
  testing::TemporaryFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), path);
  EXPECT_FALSE(JobFolder::join(base(), "a"));
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  fs::remove(path);
  fs::create_directory(path);
  fs::permissions(path, fs::perms::all);
  EXPECT_FALSE(JobFolder::join(base(), "a"));
  EXPECT_FALSE(JobFolder::join(base() / "nothing", "a"));
}

TEST_F(JobFolders, ThoseOfOtherUsersAreLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's file takes root to make";
  constexpr uid_t kOther = 12345;
  const fs::path mine = JobFolder::join(base(), "a").value().path();
  for (const fs::path& path : {base() / (prefix() + "other"), mine}) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  }
  EXPECT_FALSE(JobFolder::join(base(), "a"));
  remove_dead_jobs(base());
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(JobFolders, WhoCannotWriteThereGoesOnWithout) {
  if (::geteuid() == 0) {
    EXPECT_EQ(testing::in_a_child([&] {
                fs::permissions(base(), fs::perms::owner_read | fs::perms::owner_exec);
                if (::setuid(12345) != 0) return 2;
                return JobFolder::join(base(), "a") ? 1 : 0;
              }),
              0);
  } else {
    fs::permissions(base(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_FALSE(JobFolder::join(base(), "a"));
  }
  fs::permissions(base(), fs::perms::owner_all);
}

/// As of a full /dev/shm: others of the job may have been there before.
TEST_F(JobFolders, WhoHasNoRoomForTheMarkJoinsAllTheSame) {
  const int code = testing::in_a_child([&] {
    if (!testing::forbid(SYS_pwrite64, ENOSPC)) return testing::kNoSeccomp;
    return JobFolder::join(base(), "a") ? 0 : 1;
  });
  if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(names().empty());  // and it removed what it made
}

// A new folder is for a moment not locked: whoever cleans up then must not leave its rank without.
TEST_F(JobFolders, WhoJoinsHasAFolderWhateverIsCleanedUpMeanwhile) {
  std::jthread cleaner([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) remove_dead_jobs(base());
  });
  for (int i = 0; i < 300; ++i) {
    const auto folder = JobFolder::join(base(), std::to_string(i % 3));
    ASSERT_TRUE(folder);
    std::ofstream(folder->path() / "segment") << "mine";
    ASSERT_TRUE(fs::exists(folder->path() / "segment"));
    ASSERT_TRUE(fs::exists(folder->path() / "lock"));
  }
}

TEST(LaunchedJobs, AreKnownByWhatPmixAndOpenMpiSay) {
  std::map<std::string, std::string> variables;
  const auto read = [&] {
    return launched_job([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_FALSE(read());
  variables["PMIX_SERVER_TMPDIR"] = "/tmp/ompi.host.0/pid.17";
  EXPECT_FALSE(read());
  variables["PMIX_NAMESPACE"] = "1182924801";
  const auto first = read();
  ASSERT_TRUE(first);
  EXPECT_EQ(read(), first);
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR",
                           "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI2"}) {
    const auto before = variables;
    variables[name] += "1";
    EXPECT_NE(read(), first) << name;
    variables = before;
  }
}

/// Here this process has the name of the one that starts ranks, and a child asks.
TEST(LaunchedJobs, OfMpichAreKnownByTheProcessThatStartedThem) {
  const auto hydra = [](const char* name) -> const char* {
    const std::string_view word = name;
    return word == "PMI_RANK" || word == "MPI_LOCALRANKID" ? "1" : nullptr;
  };
  const auto ask = [&] {
    const auto job = launched_job(hydra);
    if (!job) return 1;
    const auto parent = placement::identity_of(::getppid());
    const std::string id =
        "hydra " + std::to_string(parent->id) + ' ' + std::to_string(parent->start);
    return job == id ? 0 : 2;
  };
  EXPECT_EQ(testing::in_a_child(ask), 1);  // somebody else speaks PMI
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  ::prctl(PR_SET_NAME, "hydra_pmi_proxy");
  EXPECT_EQ(testing::in_a_child(ask), 0);
  ::prctl(PR_SET_NAME, name);
}

}  // namespace
}  // namespace cputrain::mpi
