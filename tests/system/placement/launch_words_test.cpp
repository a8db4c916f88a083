#include "system/placement/launch_words.h"

#include <gtest/gtest.h>

#include "made_up_proc.h"

namespace cputrain::placement {
namespace {

using Words = std::vector<std::string>;

constexpr pid_t kRank = 60;

/// Ranks of one job below these processes, the nearest last: each with the words of its command.
Words words_below(const std::vector<Words>& ancestors, int ranks = 2) {
  MadeUpProc proc;
  proc.add(1, 0, "init");
  pid_t parent = 1;
  for (const Words& command : ancestors) {
    const pid_t id = parent + 10;
    const std::string file = std::filesystem::path(command.front()).filename().string();
    proc.add(id, parent, file.substr(0, file.find(':')).substr(0, 15));
    proc.say(id, command);
    parent = id;
  }
  proc.add(kRank, parent, "cputrain");
  proc.say(kRank, {"./cputrain", "--batch", "8"});
  return launch_words(ranks, kRank, proc.path());
}

TEST(LaunchWords, AreThoseThatWereTyped) {
  EXPECT_EQ(words_below({{"bash"},
                         {"mpirun", "--oversubscribe", "-x", "A=b c", "-np", "2", "./cputrain",
                          "--batch", "8"}}),
            (Words{"mpirun", "--oversubscribe", "-x", "A", "-np", "2"}));
  EXPECT_EQ(words_below({{"/usr/bin/mpirun", "-np", "2", "numactl", "-l", "/opt/cputrain"}}),
            (Words{"/usr/bin/mpirun", "-np", "2", "numactl", "-l"}));
  EXPECT_EQ(words_below({{"/usr/bin/prterun", "-n", "2", "./cputrain"}}),
            (Words{"mpirun", "-n", "2"}));
}

TEST(LaunchWords, HaveNoValuesOfVariables) {
  EXPECT_EQ(
      words_below({{"mpirun", "--x", "A=1", "-np", "2", "/usr/bin/env", "B=2", "./cputrain"}}),
      (Words{"mpirun", "--x", "A", "-np", "2", "/usr/bin/env"}));
  EXPECT_EQ(words_below({{"mpirun", "--mca", "mca_base_env_list", "A=1;B=2", "./cputrain"}}),
            (Words{"mpirun", "--mca", "mca_base_env_list", "A"}));
  EXPECT_EQ(words_below({{"mpiexec", "-genv", "A=1", "-n", "2", "--env", "B", "2", "./cputrain"}}),
            (Words{"mpiexec", "-genvlist", "A", "-n", "2", "--envlist", "B"}));
}

TEST(LaunchWords, OfHydraAreThoseAboveItsProxy) {
  EXPECT_EQ(words_below({{"mpiexec.hydra", "-n", "2", "./cputrain"}, {"hydra_pmi_proxy", "--x"}}),
            (Words{"mpiexec.hydra", "-n", "2"}));
  EXPECT_EQ(words_below({{"mpiexec.hydra", "-genv", "TOKEN", "secret", "-n", "2", "./cputrain"}}),
            (Words{"mpiexec.hydra", "-genvlist", "TOKEN", "-n", "2"}));
}

TEST(LaunchWords, ArePlainWhereNoneAreKnown) {
  const Words plain{"mpirun", "-np", "3"};
  EXPECT_EQ(words_below({{"bash"}}, 3), plain);
  EXPECT_EQ(words_below({{"orted", "-mca", "./cputrain"}}, 3), plain);  // on another host
  EXPECT_EQ(words_below({{"mpirun", "--app", "jobs"}}, 3), plain);
  EXPECT_EQ(words_below({{"mpirun", "-np", "1", "./cputrain", ":", "-np", "2", "./cputrain"}}, 3),
            plain);
  EXPECT_EQ(launch_words(3, kRank, "/nothing"), plain);
}

TEST(LaunchWords, BelowSlurmAreThoseOfSrun) {
  EXPECT_EQ(words_below({{"slurmstepd: [12.0]"}}, 4), (Words{"srun", "-n", "4"}));
  EXPECT_EQ(words_below({{"slurmstepd: [12.batch]"}, {"mpirun", "-np", "4", "./cputrain"}}, 4),
            (Words{"mpirun", "-np", "4"}));
}

TEST(LaunchWords, OfOneRankAreNone) {
  EXPECT_EQ(words_below({{"mpirun", "-np", "1", "./cputrain"}}, 1), Words());
}

}  // namespace
}  // namespace cputrain::placement
