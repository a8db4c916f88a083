#include "sweep/calm_runs.h"

#include <gtest/gtest.h>

#include <ranges>

namespace cputrain {
namespace {

RunFigures run(std::optional<double> stolen, double seconds = 10) {
  return {.stolen = stolen, .watched_seconds = seconds};
}

std::vector<int> repeats(const Runs& runs) {
  const auto keys = std::views::keys(runs);
  return {keys.begin(), keys.end()};
}

TEST(CalmRuns, KnowWhatWasDisturbed) {
  EXPECT_FALSE(is_disturbed(run(0.02)));
  EXPECT_TRUE(is_disturbed(run(0.021)));
  EXPECT_FALSE(is_disturbed(run({})));
}

TEST(CalmRuns, AreMadeForDisturbedOnesUpToAnEnd) {
  Runs runs;
  EXPECT_EQ(runs_to_make(runs, 3, 6), 3);
  runs = {{1, run(0)}, {2, run(0.5)}, {4, run({})}};
  EXPECT_EQ(runs_to_make(runs, 3, 6), 4);
  EXPECT_EQ(runs_to_make(runs, 3, 3), 3);  // whole epochs
  for (int repeat = 5; repeat <= 9; ++repeat) runs[repeat] = run(0.5);
  EXPECT_EQ(runs_to_make(runs, 3, 6), 6);
}

TEST(CalmRuns, ThatLostLeastCount) {
  const Runs runs{{1, run(0.5)}, {2, run(0.1)}, {3, run(0.2)}, {5, run(0)}, {6, run({})}};
  EXPECT_EQ(repeats(calmest(runs, 3)), (std::vector{2, 5, 6}));
  EXPECT_EQ(repeats(calmest(runs, 9)), (std::vector{1, 2, 3, 5, 6}));
  EXPECT_EQ(repeats(calmest({{1, run(0)}, {2, run(0)}, {3, run(0)}}, 2)), (std::vector{1, 2}));
  EXPECT_TRUE(calmest({}, 3).empty());
}

TEST(CalmRuns, AreNotToldApartWhereAllWereShort) {
  Runs runs{{1, run(0.5, 1.9)}, {2, run(0, 0.1)}, {3, run(0.1, 1.9)}};
  EXPECT_EQ(runs_to_make(runs, 2, 4), 2);
  EXPECT_EQ(repeats(calmest(runs, 2)), (std::vector{1, 2}));
  runs[3].watched_seconds = 2;  // one of them shows how long such trainings are
  EXPECT_EQ(runs_to_make(runs, 2, 4), 4);
  EXPECT_EQ(repeats(calmest(runs, 2)), (std::vector{2, 3}));
}

}  // namespace
}  // namespace cputrain
