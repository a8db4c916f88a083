#include "cli/core_turns.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cputrain {
namespace {

using Cpus = std::vector<int>;

/// Where a thread was bound, one after the other.
struct Places {
  std::vector<Cpus> seen;
  CoreTurns::Bind bind() {
    return [this](const Cpus& cpus) {
      seen.push_back(cpus);
      return true;
    };
  }
};

TEST(CoreTurns, VisitEveryCoreAndGiveAllBack) {
  Places places;
  {
    const CoreTurns turns({2, 5, 7}, places.bind());
    ASSERT_EQ(turns.count(), 3U);
    for (std::size_t i = 0; i < turns.count(); ++i) turns.visit(i);
  }
  EXPECT_EQ(places.seen, (std::vector<Cpus>{{2}, {5}, {7}, {2, 5, 7}}));
}

TEST(CoreTurns, OfManyCoresVisitSomeThatAreSpreadOverAll) {
  Cpus cpus(20);
  std::iota(cpus.begin(), cpus.end(), 0);
  Places places;
  {
    const CoreTurns turns(cpus, places.bind());
    ASSERT_EQ(turns.count(), CoreTurns::kMost);
    for (std::size_t i = 0; i < turns.count(); ++i) turns.visit(i);
  }
  EXPECT_EQ(places.seen, (std::vector<Cpus>{{0}, {2}, {5}, {7}, {10}, {12}, {15}, {17}, cpus}));
}

TEST(CoreTurns, StayWhereThereIsNoChoice) {
  Places places;
  for (const Cpus& cpus : {Cpus{}, Cpus{3}}) {
    const CoreTurns turns(cpus, places.bind());
    ASSERT_EQ(turns.count(), 1U);
    turns.visit(0);
  }
  EXPECT_TRUE(places.seen.empty());
}

}  // namespace
}  // namespace cputrain
