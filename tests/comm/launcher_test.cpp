#include "backends/mpi/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backends/mpi/pieces.h"

namespace cputrain {
namespace {

Launcher with(const std::map<std::string, std::string>& variables) {
  return read_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_rank(const Launcher& launcher, int rank, int size) {
  EXPECT_TRUE(launcher.present);
  EXPECT_EQ(launcher.rank, rank);
  EXPECT_EQ(launcher.size, size);
  EXPECT_EQ(launcher.warning, "");
}

TEST(Launcher, nobody) {
  const Launcher launcher = with({{"PATH", "/bin"}});
  EXPECT_FALSE(launcher.present);
  EXPECT_EQ(launcher.rank, 0);
  EXPECT_EQ(launcher.size, 1);
  EXPECT_EQ(launcher.warning, "");
}

TEST(Launcher, openMpi) {
  expect_rank(
      with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "96"}, {"PMIX_RANK", "3"}}), 3,
      96);
}

TEST(Launcher, openMpiInsideAnAllocation) {
  expect_rank(with({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "8"}}),
              1, 2);
}

TEST(Launcher, pmi) { expect_rank(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}}), 0, 4); }

TEST(Launcher, srunWithPmix) {
  expect_rank(with({{"PMIX_RANK", "5"},
                    {"SLURM_PROCID", "5"},
                    {"SLURM_NTASKS", "64"},
                    {"SLURM_STEP_NUM_TASKS", "8"}}),
              5, 8);
}

TEST(Launcher, aBatchScriptIsNoLauncher) {
  const Launcher launcher = with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  EXPECT_FALSE(launcher.present);
  EXPECT_EQ(launcher.size, 1);
  EXPECT_EQ(launcher.warning, "");
}

TEST(Launcher, srunWithoutPmiIsWarnedAbout) {
  const Launcher launcher =
      with({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_FALSE(launcher.present);
  EXPECT_NE(launcher.warning.find("8 tasks"), std::string::npos) << launcher.warning;
  EXPECT_NE(launcher.warning.find("--mpi=pmix"), std::string::npos) << launcher.warning;
}

TEST(Launcher, nonsenseIsNobody) {
  EXPECT_FALSE(with({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).present);
  EXPECT_FALSE(with({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}).present);
  EXPECT_FALSE(with({{"PMI_RANK", ""}, {"PMI_SIZE", "2"}}).present);
}

std::vector<Range> pieces(std::size_t size, std::size_t limit) {
  std::vector<Range> result;
  for_pieces(size, limit, [&](Range piece) { result.push_back(piece); });
  return result;
}

TEST(Pieces, coverEverythingOnce) {
  EXPECT_EQ(pieces(0, 4), std::vector<Range>{});
  EXPECT_EQ(pieces(3, 4), (std::vector<Range>{{0, 3}}));
  EXPECT_EQ(pieces(4, 4), (std::vector<Range>{{0, 4}}));
  EXPECT_EQ(pieces(9, 4), (std::vector<Range>{{0, 4}, {4, 8}, {8, 9}}));
}

TEST(Pieces, fitIntoCountsOfMpi) {
  const std::size_t five_billion = 5'000'000'000;
  std::size_t covered = 0;
  for (const Range& piece : pieces(five_billion, kMaxCount)) {
    EXPECT_EQ(piece.begin, covered);
    EXPECT_LE(piece.size(), std::size_t{2147483647});
    covered = piece.end;
  }
  EXPECT_EQ(covered, five_billion);
}

}  // namespace
}  // namespace cputrain
