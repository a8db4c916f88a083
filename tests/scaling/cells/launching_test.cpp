#include "scaling/cells/plan.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace cputrain::cells {
namespace {

std::string words_for(const Launching& launching, int ranks, int threads) {
  Cell cell;
  cell.ranks = ranks;
  cell.threads = threads;
  cell.cpus = ranks * threads;
  return join(launch_words(launching, cell), " ");
}

TEST(LaunchingTest, RanksGetTheirCoresAndNoMore) {
  Launching here{.words = "", .host = {8, 16, 2, 0}, .mpi = true, .open_mpi = true};
  EXPECT_EQ(words_for(here, 1, 1), "mpirun -np 1 --bind-to core");
  EXPECT_EQ(words_for(here, 1, 4), "mpirun -np 1 --map-by slot:PE=4 --bind-to core");
  EXPECT_EQ(words_for(here, 4, 2), "mpirun -np 4 --map-by ppr:2:numa:PE=2 --bind-to core");
  EXPECT_EQ(words_for(here, 16, 1), "mpirun -np 16 --use-hwthread-cpus --bind-to hwthread");
  EXPECT_EQ(words_for(here, 8, 2),
            "mpirun -np 8 --use-hwthread-cpus --map-by slot:PE=2 --bind-to hwthread");
  EXPECT_EQ(words_for(here, 96, 1), "mpirun -np 96 --oversubscribe --bind-to none");
  here.as_root = true;
  EXPECT_EQ(words_for(here, 1, 1), "mpirun --allow-run-as-root -np 1 --bind-to core");
  here.open_mpi = false;  // whose flags are its own
  EXPECT_EQ(words_for(here, 4, 1), "mpirun -np 4");
  here.mpi = false;
  EXPECT_EQ(words_for(here, 1, 4), "");
}

TEST(LaunchingTest, TakesTheWordsOfTheUser) {
  Launching own{.words = "mpirun --hostfile  hosts", .host = {2, 2, 1, 0}, .mpi = true};
  EXPECT_EQ(words_for(own, 96, 1), "mpirun --hostfile hosts -np 96");
  own.words = "/usr/bin/srun --mpi=pmix";
  EXPECT_EQ(words_for(own, 4, 2), "/usr/bin/srun --mpi=pmix -n 4");
  own.words = "srun -n {ranks} -c {threads}";
  EXPECT_EQ(words_for(own, 4, 2), "srun -n 4 -c 2");
}

TEST(LaunchingTest, SaysWhyACellCannotBeMeasured) {
  Launching here{.words = "", .host = {2, 2, 1, 0}, .mpi = true, .open_mpi = true};
  Cell cell;
  cell.ranks = cell.cpus = 96;
  const std::vector<BackendHere> backends{{"cpu", {"float", "exact"}}};
  here.backends = backends;
  EXPECT_NE(why_not(here, cell).find("2 hardware threads"), std::string::npos);
  here.oversubscribe = true;
  EXPECT_EQ(why_not(here, cell), "");
  cell.threads = 2;
  here.team_limit = 1;
  here.team_limited_by = "OMP_THREAD_LIMIT";
  EXPECT_EQ(why_not(here, cell), "OMP_THREAD_LIMIT allows 1 thread per rank, not 2");
  cell.threads = 1;
  here = {.words = "mpirun --hostfile hosts", .host = {2, 2, 1, 0}, .mpi = true};
  here.backends = backends;
  EXPECT_EQ(why_not(here, cell), "");
  cell.axes = {{"precision", "bf16"}};
  EXPECT_EQ(why_not(here, cell), "backend cpu computes in float, exact, not in bf16");
  cell.axes = {{"precision", "exact"}};
  EXPECT_EQ(why_not(here, cell), "");
  cell.backend = "cuda";
  EXPECT_NE(why_not(here, cell).find("no backend cuda"), std::string::npos);
  cell.backend = "cpu";
  EXPECT_NE(why_not({.words = "", .host = {2, 2, 1, 0}, .backends = backends}, cell).find("no MPI"),
            std::string::npos);
}

TEST(LaunchingTest, DevicesAreCountedAsThemselves) {
  Launching here{.words = "", .host = {2, 2, 1, 0}, .mpi = true, .open_mpi = true};
  here.backends = {{"cuda", {"exact"}, 4, ""}};
  Cell cell;
  cell.backend = "cuda";
  cell.ranks = cell.cpus = 4;
  EXPECT_EQ(why_not(here, cell), "");  // more than there are hardware threads
  here.backends.front().devices = 1;
  EXPECT_EQ(why_not(here, cell),
            "this machine has 1 GPU, not 4 (--oversubscribe measures it all the same)");
  here.oversubscribe = true;  // ranks share it
  EXPECT_EQ(why_not(here, cell), "");
  here.backends = {{"cuda", {"exact"}, 0, "no NVIDIA driver"}};
  EXPECT_EQ(why_not(here, cell), "there is no device for it here: no NVIDIA driver");
  here.words = "srun -n {ranks}";  // others may have some
  EXPECT_EQ(why_not(here, cell), "");
}

}  // namespace
}  // namespace cputrain::cells
