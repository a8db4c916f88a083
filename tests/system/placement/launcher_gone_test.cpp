#include "system/placement/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "made_up_proc.h"

namespace cputrain::placement {
namespace {

TEST(LauncherGone, TheNearestAncestorWithALaunchersNameIsFound) {
  for (const char* name : {"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra", "orterun",
                           "prterun", "orted", "prted", "prte", "hydra_pmi_proxy", "slurmstepd"}) {
    MadeUpProc proc;
    proc.add(1, 0, "init");
    proc.add(20, 1, "slurmstepd");
    proc.add(30, 20, "bash");
    proc.add(40, 30, name);
    proc.add(50, 40, "sh (a) 1 2");
    proc.add(60, 50, "cputrain");
    EXPECT_EQ(find_launcher(60, proc.path()), MadeUpProc::identity(40)) << name;
    EXPECT_EQ(find_launcher(50, proc.path()), MadeUpProc::identity(40)) << name;
  }
}

TEST(LauncherGone, AnUnknownLauncherIsTheParentButNotTheFirstProcess) {
  MadeUpProc proc;
  proc.add(1, 0, "init");
  proc.add(20, 1, "launcher-of-ours");
  proc.add(30, 20, "cputrain");
  EXPECT_EQ(find_launcher(30, proc.path()), MadeUpProc::identity(20));
  EXPECT_FALSE(find_launcher(20, proc.path()));  // who is an orphan already
  EXPECT_FALSE(find_launcher(1, proc.path()));
  EXPECT_FALSE(find_launcher(99, proc.path()));
  EXPECT_FALSE(find_launcher(30, proc.path() / "nothing"));
}

TEST(LauncherGone, AnEndedProcessAZombieAndALaterOneWithItsNumberAreGone) {
  MadeUpProc proc;
  proc.add(40, 1, "mpirun");
  EXPECT_FALSE(is_gone(MadeUpProc::identity(40), proc.path()));
  EXPECT_EQ(identity_of(40, proc.path()), MadeUpProc::identity(40));
  EXPECT_FALSE(identity_of(41, proc.path()));
  EXPECT_TRUE(is_gone({40, MadeUpProc::start_of(40) - 1}, proc.path()));
  proc.add(40, 1, "mpirun", 'Z');
  EXPECT_TRUE(is_gone(MadeUpProc::identity(40), proc.path()));
  proc.remove(40);
  EXPECT_TRUE(is_gone(MadeUpProc::identity(40), proc.path()));
}

// A process that calls itself mpirun, one between as a shell would be, and a rank.
TEST(LauncherGone, ARankSeesThatItsLauncherIsKilledThoughNobodyHasReapedIt) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const auto say = [&](char word) { return ::write(ends[1], &word, 1) == 1; };
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::prctl(PR_SET_NAME, "mpirun");
    const pid_t between = ::fork();
    if (between == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process outlives the test
    if (between == 0 && ::fork() == 0) {
      const auto gone = launcher_gone();
      const bool lives = gone && !gone();
      if (!say(lives ? 'l' : '-')) ::_exit(1);
      while (lives && !gone()) ::usleep(1000);
      ::_exit(say('g') ? 0 : 1);
    }
    for (;;) ::pause();
  }
  char word = 0;
  ASSERT_EQ(::read(ends[0], &word, 1), 1);
  EXPECT_EQ(word, 'l');
  ::kill(launcher, SIGKILL);  // a zombie from now on
  ASSERT_EQ(::read(ends[0], &word, 1), 1);
  EXPECT_EQ(word, 'g');
  ::waitpid(launcher, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace cputrain::placement
