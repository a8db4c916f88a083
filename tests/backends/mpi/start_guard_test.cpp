#include "backends/mpi/start_guard.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace cputrain::mpi {
namespace {

placement::Launcher launcher(int size, int local_size) {
  return {.kind = placement::Launcher::Kind::open_mpi, .size = size, .local_size = local_size};
}

void expect_said(const placement::Launcher& launcher, const Arrivals& arrivals,
                 const std::string& words) {
  const std::string text = missing_text(launcher, arrivals, 8);
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(StartGuard, NamesRanksOfOneMachineThatDidNotCome) {
  expect_said(launcher(3, 3), {.here = {0, 1}}, "8 s (--stall start): rank 2 never came");
  expect_said(launcher(4, 4), {.here = {1}}, "Missing ranks: 0, 2, 3 never came");
}

TEST(StartGuard, CountsThoseOfOtherMachines) {
  expect_said(launcher(4, 2), {.here = {0}}, "1 of 2 ranks of this machine never came");
  expect_said(launcher(4, 2), {.here = {0, 1}}, "others of 4 did not come from their hosts");
}

TEST(StartGuard, NamesARankThatWasStopped) {
  expect_said(launcher(2, 2), {.here = {0, 1}, .stopped = {1}}, "rank 1 came and moves no more");
}

TEST(StartGuard, WithoutAFolderItKnowsHowManyThereAre) {
  expect_said(launcher(3, 3), {}, "not all of 3 processes have come");
}

TEST(StartGuard, ReadsWhoHasCome) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"arrived-0", "arrived-12", "arrived-x", "lock"}) {
    std::ofstream(folder.path() / name) << "";
  }
  std::filesystem::last_write_time(
      folder.path() / "arrived-12",
      std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  const Arrivals arrivals = read_arrivals(folder.path());
  EXPECT_EQ(arrivals.here, (std::set<int>{0, 12}));
  EXPECT_EQ(arrivals.stopped, std::set<int>{12});
}

}  // namespace
}  // namespace cputrain::mpi
