// Folders of jobs, below a folder that stands for /dev/shm. Processes are children of this one,
// since a lock is a process's.
#include "backends/mpi/job_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../../support/in_a_child.h"
#include "../../support/temporary_folder.h"

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
  static LaunchedJob job(const std::string& id) {
    return {.id = id, .session = "", .launcher = {}};
  }

  /// A rank of the job that lives until it is killed.
  std::unique_ptr<Child> rank(const LaunchedJob& of, const std::string& file = "") {
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
  static std::string prefix() { return "cputrain-" + std::to_string(::geteuid()) + "-"; }
  const fs::path& base() const { return folder_.path(); }

  testing::TemporaryFolder folder_;
};

TEST_F(JobFolders, RanksOfAJobShareOneThatTheLastRemoves) {
  auto first = JobFolder::join(base(), job("a"));
  ASSERT_TRUE(first);
  const fs::path path = first->path();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  auto second = JobFolder::join(base(), job("a"));
  auto other = JobFolder::join(base(), job("b"));
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
      ranks.emplace_back([&] { EXPECT_TRUE(JobFolder::join(base(), job("a"))); });
    for (std::thread& one : ranks) one.join();
    EXPECT_EQ(names(), std::vector<std::string>{});
  }
}

TEST_F(JobFolders, ThoseOfTheDeadAreRemovedAndThoseOfTheLivingStay) {
  const auto living = rank(job("living"), "segment");
  const auto dead = rank(job("dead"), "segment"), half_dead = rank(job("living"));
  ASSERT_TRUE(living->began() && dead->began() && half_dead->began());
  ASSERT_EQ(names().size(), 2u);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_EQ(names().size(), 2u);
  dead->kill();
  half_dead->kill();
  remove_dead_jobs(base(), job("mine"));
  ASSERT_EQ(names().size(), 1u);
  EXPECT_TRUE(fs::exists(base() / names()[0] / "segment"));
  living->kill();
  remove_dead_jobs(base(), job("mine"));
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Killed between the steps of making or removing one.
TEST_F(JobFolders, BegunAndHalfRemovedOnesAreRemoved) {
  const auto owner_only = fs::perms::owner_all;
  for (const char* name : {"1", "2-77"}) {
    fs::create_directory(base() / (prefix() + name));
    fs::permissions(base() / (prefix() + name), owner_only);
  }
  std::ofstream(base() / (prefix() + "2-77") / "segment") << "left";
  remove_dead_jobs(base(), job("mine"));
  EXPECT_EQ(names(), std::vector<std::string>{});
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
  remove_dead_jobs(base(), job("mine"));
  EXPECT_EQ(names(), before);
  EXPECT_TRUE(fs::exists(elsewhere.path() / "precious"));
  EXPECT_FALSE(fs::exists(elsewhere.path() / "precious" / "lock"));
}

TEST_F(JobFolders, NobodyJoinsOneThatIsALinkOrOpenToOthers) {
  const fs::path path = JobFolder::join(base(), job("a")).value().path();
  ASSERT_FALSE(fs::exists(path));
  testing::TemporaryFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), path);
  EXPECT_FALSE(JobFolder::join(base(), job("a")));
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  fs::remove(path);
  fs::create_directory(path);
  fs::permissions(path, fs::perms::all);
  EXPECT_FALSE(JobFolder::join(base(), job("a")));
  EXPECT_FALSE(JobFolder::join(base() / "nothing", job("a")));
}

TEST_F(JobFolders, ThoseOfOtherUsersAreLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's file takes root to make";
  constexpr uid_t kOther = 12345;
  const fs::path mine = JobFolder::join(base(), job("a")).value().path();
  for (const fs::path& path : {base() / (prefix() + "other"), mine}) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  }
  EXPECT_FALSE(JobFolder::join(base(), job("a")));
  remove_dead_jobs(base(), job("mine"));
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(JobFolders, WhoCannotWriteThereGoesOnWithout) {
  if (::geteuid() == 0) {
    EXPECT_EQ(testing::in_a_child([&] {
                fs::permissions(base(), fs::perms::owner_read | fs::perms::owner_exec);
                if (::setuid(12345) != 0) return 2;
                return JobFolder::join(base(), job("a")) ? 1 : 0;
              }),
              0);
  } else {
    fs::permissions(base(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_FALSE(JobFolder::join(base(), job("a")));
  }
  fs::permissions(base(), fs::perms::owner_all);
}

// A new folder is for a moment not locked: whoever cleans up then must not leave its rank without.
TEST_F(JobFolders, WhoJoinsHasAFolderWhateverIsCleanedUpMeanwhile) {
  std::jthread cleaner([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) remove_dead_jobs(base(), job("other"));
  });
  for (int i = 0; i < 300; ++i) {
    const auto folder = JobFolder::join(base(), job(std::to_string(i % 3)));
    ASSERT_TRUE(folder);
    std::ofstream(folder->path() / "segment") << "mine";
    ASSERT_TRUE(fs::exists(folder->path() / "segment"));
    ASSERT_TRUE(fs::exists(folder->path() / "lock"));
  }
}

/// Sessions of launchers, as Open MPI names them.
class Sessions : public JobFolders {
 protected:
  /// A job killed with all its ranks, whose launcher's folder is there.
  void leave_dead_job(const std::string& session,
                      std::optional<placement::ProcessIdentity> launcher) {
    fs::create_directories(session);
    std::ofstream(fs::path(session) / "contact.txt") << "left";
    const auto one = rank({.id = session, .session = session, .launcher = launcher});
    ASSERT_TRUE(one->began());
  }
  fs::path sessions() const { return tmp_.path() / "ompi.host.0"; }

  testing::TemporaryFolder tmp_;
};

TEST_F(Sessions, OfADeadLauncherGoWithItsJobAndThoseOfTheLivingStay) {
  auto launcher = std::make_unique<Child>([](const auto& wait) {
    wait();
    return true;
  });
  const pid_t id = launcher->id();
  const auto identity = placement::find_launcher(::getpid());  // only to see that /proc is there
  ASSERT_TRUE(identity);
  const placement::ProcessIdentity dead{.id = id, .start = 1};  // an earlier one with its number
  const std::string session = sessions() / ("pid." + std::to_string(id));
  leave_dead_job(session, dead);
  remove_dead_jobs(base(), {.id = "mine", .session = session, .launcher = {}});
  EXPECT_TRUE(fs::exists(session));  // it is that of the running job
  leave_dead_job(session, std::nullopt);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_TRUE(fs::exists(session));  // there is a process of that number, and no more is known
  leave_dead_job(session, dead);
  fs::create_directory(sessions() / "pid.1");
  remove_dead_jobs(base(), job("mine"));
  EXPECT_FALSE(fs::exists(session));
  EXPECT_TRUE(fs::exists(sessions() / "pid.1"));
  launcher->kill();
  leave_dead_job(session, std::nullopt);
  fs::remove_all(sessions() / "pid.1");
  remove_dead_jobs(base(), job("mine"));
  EXPECT_FALSE(fs::exists(sessions()));
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Open MPI 5 has no folder of sessions: the one above is everybody's, and stays even if empty.
TEST_F(Sessions, ThatAreOneFolderGoWithoutTheOneAbove) {
  const placement::ProcessIdentity dead{.id = ::getpid(), .start = 1};
  const std::string number = std::to_string(::getpid()), user = std::to_string(::geteuid());
  const std::string session = tmp_.path() / ("prted.node7.cluster." + number + "." + user);
  leave_dead_job(session, std::nullopt);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_TRUE(fs::exists(session));
  leave_dead_job(session, dead);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_FALSE(fs::exists(session));
  EXPECT_TRUE(fs::exists(tmp_.path()));
}

TEST_F(Sessions, OnOtherHostsTheDaemonThatDiedIsKnown) {
  const placement::ProcessIdentity dead{.id = ::getpid(), .start = 1};
  const std::string session = sessions() / "jf.17";
  leave_dead_job(session, std::nullopt);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_TRUE(fs::exists(session));
  leave_dead_job(session, dead);
  remove_dead_jobs(base(), job("mine"));
  EXPECT_FALSE(fs::exists(session));
}

TEST_F(Sessions, FoldersThatNoLauncherMakesStay) {
  const placement::ProcessIdentity dead{.id = ::getpid(), .start = 1};
  const std::string number = std::to_string(::getpid());
  fs::create_directory(tmp_.path() / "real");
  fs::create_directory(sessions());
  fs::create_directory_symlink(tmp_.path() / "real", sessions() / "pid.5");
  for (const fs::path& path :
       {tmp_.path() / "home" / ("pid." + number), sessions() / "pid.x", sessions() / "precious",
        sessions() / "pid.5", sessions() / ".." / "ompi.x" / ("pid." + number),
        tmp_.path() / ("prterun.host." + number + ".4711"),
        tmp_.path() / ("prterun." + number + "." + std::to_string(::geteuid()))}) {
    fs::create_directories(path);
    leave_dead_job(path, dead);
    remove_dead_jobs(base(), job("mine"));
    EXPECT_TRUE(fs::exists(path / "contact.txt")) << path;
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
  EXPECT_EQ(first->session, "/tmp/ompi.host.0/pid.17");
  EXPECT_EQ(read()->id, first->id);
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR",
                           "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI2"}) {
    const auto before = variables;
    variables[name] += "1";
    EXPECT_NE(read()->id, first->id) << name;
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
    return job->launcher == parent && job->id == id ? 0 : 2;
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
