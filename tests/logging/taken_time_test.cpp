// What the terminal tells of time that others took.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "logging/reporters.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::logging {
namespace {

/// Shares of an epoch.
struct Taken {
  double stolen = 0, cpu_wait = 0;
};

/// The notices of a console about these epochs.
std::vector<std::string> notices(const std::vector<Taken>& epochs, bool crowded = false) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "notices", rest = folder.path() / "lines";
  std::FILE* stream = std::fopen(path.c_str(), "w");
  std::FILE* lines = std::fopen(rest.c_str(), "w");
  {
    const auto reporter = console_reporter(lines, stream, Verbosity::lines, crowded);
    for (const Taken& taken : epochs) {
      loop::EpochRecord record{{.steps = 196, .seconds = 42.2}, 1};
      record.train = {1, 1, 1};
      record.taken = {.cpu_wait = taken.cpu_wait, .stolen = taken.stolen};
      reporter->begin_epoch({1, 5, 196});
      reporter->epoch(record);
    }
  }
  std::fclose(stream);
  std::fclose(lines);
  std::vector<std::string> told;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) told.push_back(line);
  return told;
}

using Notices = std::vector<std::string>;

TEST(TakenTime, OfTheHostIsToldFromATwentiethOn) {
  EXPECT_EQ(notices({{.stolen = 0.04}}), Notices{});
  EXPECT_EQ(notices({{.stolen = 0.12}}),
            Notices{"Steal: 12 % of a rank's CPU time went to others on its host"});
}

TEST(TakenTime, OfWaitsForACpuIsToldFromATenthOn) {
  EXPECT_EQ(notices({{.cpu_wait = 0.099}}), Notices{});
  EXPECT_EQ(notices({{.cpu_wait = 0.1}}).size(), 1u);
  EXPECT_EQ(notices({{.cpu_wait = 0.43}}),
            Notices{"Busy: threads of a rank waited 43 % of their time for a CPU (other work on "
                    "this machine, more threads than CPUs, or a quota of CPU time)"});
  // Ranks that are more than the CPUs wait for each other.
  EXPECT_EQ(notices({{.cpu_wait = 0.9}}, true),
            Notices{"Busy: threads of a rank waited 90 % of their time for a CPU (more threads "
                    "than CPUs take turns)"});
}

TEST(TakenTime, IsToldAgainOnlyWhereItHasGrownMuch) {
  std::vector<Taken> epochs;
  for (const double share : {0.05, 0.3, 0.45, 0.02, 0.3, 0.6, 0.5, 0.35}) {
    epochs.push_back({.stolen = share / 2, .cpu_wait = share});
  }
  Notices shares;
  for (const std::string& line : notices(epochs)) {
    shares.push_back(line[0] + line.substr(line.find(" %") - 2, 2));
  }
  EXPECT_EQ(shares, (Notices{"S15", "B30", "B60"}));
}

}  // namespace
}  // namespace cputrain::logging
