#include "system/placement/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/mpi/pieces.h"
#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::placement {
namespace {

Launcher with(const std::map<std::string, std::string>& variables) {
  return read_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_rank(const Launcher& launcher, Launcher::Kind kind, int rank, int size) {
  EXPECT_EQ(launcher.kind, kind);
  EXPECT_EQ(launcher.rank, rank);
  EXPECT_EQ(launcher.size, size);
}

using Kind = Launcher::Kind;

TEST(Launcher, Nobody) {
  const Launcher launcher = with({{"PATH", "/bin"}});
  expect_rank(launcher, Kind::none, 0, 1);
  EXPECT_FALSE(launcher.present());
}

TEST(Launcher, OpenMpi) {
  expect_rank(
      with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "96"}, {"PMIX_RANK", "3"}}),
      Kind::open_mpi, 3, 96);
}

TEST(Launcher, HowManyRanksAreOnThisMachine) {
  std::map<std::string, std::string> variables{{"OMPI_COMM_WORLD_RANK", "3"},
                                               {"OMPI_COMM_WORLD_SIZE", "8"}};
  EXPECT_EQ(with(variables).local_size, 8);  // as far as anybody tells
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "4";
  EXPECT_EQ(with(variables).local_size, 4);
  EXPECT_EQ(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}}).local_size, 2);
}

TEST(Launcher, OpenMpiInsideAnAllocation) {
  expect_rank(with({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_STEP_NUM_TASKS", "8"},
                    {"SLURM_NTASKS", "8"}}),
              Kind::open_mpi, 1, 2);
}

TEST(Launcher, Pmi) {
  expect_rank(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}}), Kind::pmi, 0, 4);
  // srun --mpi=pmi2
  expect_rank(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "8"}}),
              Kind::pmi, 1, 4);
}

TEST(Launcher, SrunWithAPmiThatLeavesTheSizeToSlurm) {
  expect_rank(with({{"PMI_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}), Kind::pmi, 1, 8);
}

TEST(Launcher, SrunWithPmix) {
  expect_rank(with({{"PMIX_RANK", "5"},
                    {"SLURM_PROCID", "5"},
                    {"SLURM_NTASKS", "64"},
                    {"SLURM_STEP_NUM_TASKS", "8"}}),
              Kind::pmix, 5, 8);
}

TEST(Launcher, PmixAloneTellsThatThereAreThoseBelow) {
  expect_rank(with({{"PMIX_RANK", "5"}}), Kind::pmix, 5, 6);
  expect_rank(with({{"PMIX_RANK", "0"}, {"SLURM_NTASKS", "64"}}), Kind::pmix, 0, 1);
}

TEST(Launcher, ABatchScriptIsNoLauncher) {
  expect_rank(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NPROCS", "8"}}),
              Kind::none, 0, 1);
  expect_rank(with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), Kind::none, 0, 1);
}

TEST(Launcher, SrunWithoutPmi) {
  const Launcher launcher =
      with({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  expect_rank(launcher, Kind::slurm, 2, 8);
  EXPECT_FALSE(launcher.present());  // no MPI would find the others
}

TEST(Launcher, NonsenseIsNobody) {
  for (const auto& variables : std::vector<std::map<std::string, std::string>>{
           {{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
           {{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}},
           {{"PMI_RANK", ""}, {"PMI_SIZE", "2"}},
           {{"PMI_RANK", "0"}, {"PMI_SIZE", "2 "}},
           {{"SLURM_STEP_NUM_TASKS", "8(x2)"}},
           {{"PMIX_RANK", "99999999999"}}}) {
    expect_rank(with(variables), Kind::none, 0, 1);
  }
}

/// What a process says that was started like this beside an MPI of so many ranks; empty: nothing.
std::string refusal(const std::map<std::string, std::string>& variables, int ranks,
                    const std::optional<std::string>& mpi = "Open MPI 4.1.4") {
  return testing::refusal_of(ExitCode::disagree,
                             [&] { check_launch(with(variables), ranks, mpi); });
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), text.npos) << text;
}

TEST(Launch, MoreProcessesThanMpiSeesAreRefused) {
  const std::map<std::string, std::string> pmi{{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}};
  expect_words(refusal(pmi, 1), {"started 3 processes (PMI_SIZE)", "Open MPI 4.1.4, sees 1",
                                 "mpirun.openmpi", "scripts/build mpich", "env -u PMI_SIZE"});
  expect_words(refusal(pmi, 1, std::nullopt), {"this build has no MPI", "-DCPUTRAIN_MPI=ON"});
  const std::map<std::string, std::string> ompi{{"OMPI_COMM_WORLD_RANK", "0"},
                                                {"OMPI_COMM_WORLD_SIZE", "3"}};
  expect_words(refusal(ompi, 1, "MPICH 4.0.2"),
               {"Open MPI's mpirun started 3", "MPICH 4.0.2, sees 1", "mpiexec.mpich"});
  expect_words(refusal({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "0"}}, 1),
               {"srun started 8", "--mpi=pmix", "env -u SLURM_STEP_NUM_TASKS"});
  expect_words(refusal({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}, 1), {"8 processes"});
}

TEST(Launch, OtherRanksPointToTheFirst) {
  for (const auto& variables : std::vector<std::map<std::string, std::string>>{
           {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}},
           {{"PMIX_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}},
           {{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"}}}) {
    const std::string text = refusal(variables, 1);
    expect_words(text, {"one of 3 processes", "rank 0"});
    EXPECT_EQ(text.find("env -u"), text.npos) << text;
  }
}

// prterun: the first cannot know of the others, so it says nothing that they could point to.
TEST(Launch, RanksOfAnUnknownNumberSayItAllThemselves) {
  for (const char* rank : {"1", "2"}) {
    const std::string text = refusal({{"PMIX_RANK", rank}, {"PMIX_NAMESPACE", "prte-1@1"}}, 1);
    expect_words(text, {"at least " + std::to_string(std::stoi(rank) + 1) + " processes",
                        "(PMIX_RANK)", "--mpi=pmix", "env -u PMIX_RANK"});
    EXPECT_EQ(text.find("rank 0"), text.npos) << text;
  }
}

TEST(Launch, AFirstRankThatCannotKnowWarns) {
  const std::map<std::string, std::string> first{{"PMIX_RANK", "0"}};
  expect_words(launch_warning(with(first), 1), {"PMIX_RANK", "MPI sees no other"});
  EXPECT_EQ(launch_warning(with(first), 3), "");
  EXPECT_EQ(launch_warning(with({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), 1), "");
  EXPECT_EQ(
      launch_warning(
          with({{"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
          1),
      "");
}

TEST(Launch, AsManyAsMpiSeesAreRight) {
  EXPECT_EQ(refusal({}, 1), "");
  EXPECT_EQ(refusal({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}, 3, "MPICH 4.0.2"), "");
  EXPECT_EQ(refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, 1), "");
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, 2), "");
  // mpirun inside a step of Slurm, with another number of ranks than the step has tasks.
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "1"},
                     {"SLURM_STEP_NUM_TASKS", "8"}},
                    1),
            "");
  EXPECT_EQ(refusal({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_NUM_NODES", "2"}}, 1), "");
  EXPECT_EQ(refusal({{"PMIX_RANK", "0"}}, 1), "");  // nobody can know: a warning
  EXPECT_EQ(refusal({{"WORLD_SIZE", "4"}, {"RANK", "0"}}, 1), "");
}

TEST(Launch, TorchrunIsWarnedAbout) {
  const auto warning = [](const std::map<std::string, std::string>& variables, int ranks) {
    return launch_warning(with(variables), ranks);
  };
  expect_words(warning({{"WORLD_SIZE", "4"}, {"RANK", "1"}}, 1), {"4 processes", "mpirun -np 4"});
  EXPECT_EQ(warning({{"WORLD_SIZE", "4"}, {"RANK", "1"}}, 4), "");
  EXPECT_EQ(warning({{"WORLD_SIZE", "1"}, {"RANK", "0"}}, 1), "");
  EXPECT_EQ(warning({{"WORLD_SIZE", "4"}}, 1), "");
  EXPECT_EQ(warning({{"WORLD_SIZE", "many"}, {"RANK", "0"}}, 1), "");
}

std::vector<Range> pieces(std::size_t size, std::size_t limit) {
  std::vector<Range> result;
  mpi::for_pieces(size, limit, [&](Range piece) { result.push_back(piece); });
  return result;
}

TEST(Pieces, CoverEverythingOnce) {
  EXPECT_EQ(pieces(0, 4), std::vector<Range>{});
  EXPECT_EQ(pieces(3, 4), (std::vector<Range>{{0, 3}}));
  EXPECT_EQ(pieces(4, 4), (std::vector<Range>{{0, 4}}));
  EXPECT_EQ(pieces(9, 4), (std::vector<Range>{{0, 4}, {4, 8}, {8, 9}}));
}

TEST(Pieces, FitIntoCountsOfMpi) {
  const std::size_t five_billion = 5'000'000'000;
  std::size_t covered = 0;
  for (const Range& piece : pieces(five_billion, mpi::kMaxCount)) {
    EXPECT_EQ(piece.begin, covered);
    EXPECT_LE(piece.size(), std::size_t{2147483647});
    covered = piece.end;
  }
  EXPECT_EQ(covered, five_billion);
}

}  // namespace
}  // namespace cputrain::placement
