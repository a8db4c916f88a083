// What a training lost, and from which share on that is said.

#include "scaling/cells/explanation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cputrain::cells {
namespace {

std::vector<std::string> kinds(const std::vector<LostTime>& lost) {
  std::vector<std::string> names;
  for (const LostTime& one : lost) names.emplace_back(one.what);
  return names;
}

using Names = std::vector<std::string>;

TEST(LostTime, NamesWhatWasLackingTheMostFirst) {
  Budget budget{.input_wait = 34, .forward = 30, .allreduce_exposed = 20, .straggler_wait = 11};
  const auto lost = lost_time(budget, 100, 0.06, 0.5);
  EXPECT_EQ(kinds(lost), (Names{"CPUs", "images", "communication", "balance", "host"}));
  EXPECT_DOUBLE_EQ(lost[1].share, 0.34);
  EXPECT_NE(lost[1].sentence.find("34 % of the time was waiting for input"), std::string::npos);
  for (const LostTime& one : lost) EXPECT_NE(one.sentence.find("try "), std::string::npos);
}

TEST(LostTime, SaysNothingOfLittle) {
  const Budget budget{.input_wait = 9, .forward = 80, .allreduce_exposed = 9, .straggler_wait = 2};
  EXPECT_EQ(kinds(lost_time(budget, 100, 0.04, 0.09)), Names{});
  EXPECT_EQ(kinds(lost_time({}, 0, std::nullopt, std::nullopt)), Names{});
  EXPECT_EQ(kinds(lost_time_of(Cell{})), Names{});
}

TEST(LostTime, OfACellIsThatOfItsBudget) {
  Cell cell;
  cell.seconds_per_epoch = 50;
  cell.budget = Budget{.input_wait = 10, .forward = 40};
  EXPECT_EQ(kinds(lost_time_of(cell)), Names{"images"});
  cell.stolen = 0.3;
  EXPECT_EQ(kinds(lost_time_of(cell)), (Names{"host", "images"}));
}

}  // namespace
}  // namespace cputrain::cells
