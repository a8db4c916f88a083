// Which cores each rank of a made-up machine gets, and when ranks are bound to them at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "system/placement/placement.h"
#include "tests/system/placement/made_up_machine.h"

namespace cputrain::placement {
namespace {

constexpr MadeUpMachine kTwoSockets{48, 2, 0, 2};  // 24 cores a NUMA node, 96 hardware threads

std::vector<int> cores_of(const Placement& plan, std::size_t rank) {
  return plan.ranks[rank].cores;
}

bool any_bound(const Placement& plan) { return std::ranges::any_of(plan.ranks, &RankPlan::bind); }

bool warns(const Placement& plan, const std::string& words) {
  return std::ranges::any_of(plan.warnings, [&](const std::string& warning) {
    return warning.find(words) != std::string::npos;
  });
}

/// No hardware thread for two ranks.
void expect_disjoint(const Placement& plan) {
  std::set<int> seen;
  for (const RankPlan& rank : plan.ranks) {
    for (const int cpu : rank.cpus) {
      EXPECT_TRUE(seen.insert(cpu).second) << "hardware thread " << cpu << " twice";
    }
  }
}

TEST(BindingPlan, RanksThatShareAMaskDivideItByNumaNode) {
  const Placement plan = plan_node(kTwoSockets.unbound(4), {});
  expect_disjoint(plan);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(cores_of(plan, rank), run(12 * rank, 12 * rank + 12));
    EXPECT_EQ(plan.ranks[rank].numa, std::vector<int>{rank / 2});
    EXPECT_EQ(plan.ranks[rank].cpus.size(), 24u);  // both hardware threads of each core
    EXPECT_TRUE(plan.ranks[rank].bind);
  }
  EXPECT_EQ(
      plan.lines.front(),
      "4 ranks x 12 threads on 48 cores (96 hardware threads), each bound to cores of its own");
  EXPECT_TRUE(plan.warnings.empty()) << plan.warnings[0];
}

TEST(BindingPlan, ARankForEveryCore) {
  const Placement plan = plan_node(kTwoSockets.unbound(48), {});
  expect_disjoint(plan);
  for (int rank = 0; rank < 48; ++rank) {
    EXPECT_EQ(plan.ranks[rank].cpus, (std::vector<int>{rank, rank + 48}));
  }
}

TEST(BindingPlan, ARankForEveryHardwareThreadHasNeighboursOnItsCore) {
  const Placement plan = plan_node(kTwoSockets.unbound(96), {});
  expect_disjoint(plan);
  EXPECT_EQ(plan.ranks[0].cpus, std::vector<int>{0});
  EXPECT_EQ(plan.ranks[1].cpus, std::vector<int>{48});
  EXPECT_EQ(plan.ranks[95].cpus, std::vector<int>{95});
}

/// 5 x 9 cores do not fit into 2 x 24 without cutting one rank in two; another number would.
TEST(BindingPlan, WhatMustSpanNumaNodesIsWarnedAbout) {
  const Placement plan = plan_node(kTwoSockets.unbound(5), {});
  expect_disjoint(plan);
  const auto spanning =
      std::ranges::count_if(plan.ranks, [](const RankPlan& rank) { return rank.numa.size() > 1; });
  EXPECT_EQ(spanning, 1);
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_TRUE(warns(plan, "2 NUMA nodes"));
  EXPECT_TRUE(warns(plan, "mpirun -np 6 --map-by ppr:3:numa:PE=8 --bind-to core"))
      << plan.warnings[0];
}

TEST(BindingPlan, RanksOfASocketDivideIt) {
  std::vector<RankPlace> places;  // as --map-by socket --bind-to socket: even ranks on socket 0
  for (int rank = 0; rank < 4; ++rank) {
    auto cpus = run(rank % 2 * 24, rank % 2 * 24 + 24);
    for (int cpu = rank % 2 * 24 + 48; cpus.size() < 48; ++cpu) cpus.push_back(cpu);
    places.push_back(kTwoSockets.place(rank, cpus));
  }
  const Placement plan = plan_node(places, {});
  EXPECT_EQ(cores_of(plan, 0), run(0, 12));
  EXPECT_EQ(cores_of(plan, 1), run(24, 36));
  EXPECT_EQ(cores_of(plan, 2), run(12, 24));
  EXPECT_EQ(cores_of(plan, 3), run(36, 48));
}

TEST(BindingPlan, ALoneRankIsNotBound) {
  EXPECT_FALSE(any_bound(plan_node(kTwoSockets.unbound(1), {})));
  EXPECT_FALSE(any_bound(plan_node(kTwoSockets.unbound(1), threads(12))));
  EXPECT_TRUE(any_bound(plan_node(kTwoSockets.unbound(1), {12, {}, true})));  // --bind
}

TEST(BindingPlan, OnlyWhereTheMachineIsFull) {
  EXPECT_FALSE(any_bound(plan_node(kTwoSockets.unbound(4), threads(6))));
  EXPECT_TRUE(any_bound(plan_node(kTwoSockets.unbound(4), threads(12))));
  EXPECT_FALSE(any_bound(plan_node(kTwoSockets.unbound(4), {12, {}, false})));  // --no-bind
  EXPECT_FALSE(any_bound(plan_node(kTwoSockets.unbound(97), {})));
  EXPECT_FALSE(any_bound(plan_node(MadeUpMachine{48, 2, 3}.unbound(2), {})));  // a quota of 3 CPUs
  EXPECT_FALSE(any_bound(plan_node({kCloud.place(0, run(0, 4)), kCloud.place(1, run(0, 4))}, {})));
}

TEST(BindingPlan, WhoBindsHimselfIsLeftAlone) {
  auto places = kTwoSockets.unbound(4);
  for (RankPlace& place : places) place.user_binds = true;
  EXPECT_FALSE(any_bound(plan_node(places, {})));
  EXPECT_FALSE(any_bound(plan_node(places, {{}, {}, true})));
}

TEST(BindingPlan, MasksThatOverlapOnlyInPartStay) {
  const MadeUpMachine machine{6};
  EXPECT_FALSE(any_bound(
      plan_node({machine.place(0, run(0, 4)), machine.place(1, run(2, 6))}, {{}, {}, true})));
}

TEST(BindingPlan, ACoreForCommunicationInAJobOfSeveralHosts) {
  const Placement plan = plan_node(kTwoSockets.unbound(2), {}, 2);
  for (const int rank : {0, 1}) {
    const RankPlan& mine = plan.ranks[rank];
    EXPECT_EQ(mine.threads, 23);
    EXPECT_EQ(mine.cores, run(24 * rank, 24 * rank + 23));
    EXPECT_EQ(mine.communication_cpu, 24 * rank + 23);
  }
  const Placement lone = plan_node(kTwoSockets.unbound(1), {}, 2);  // free, but nobody is bound
  EXPECT_EQ(lone.ranks[0].threads, 47);
  EXPECT_TRUE(lone.ranks[0].communication_core);
  EXPECT_FALSE(lone.ranks[0].communication_cpu);
  EXPECT_TRUE(lone.warnings.empty()) << lone.warnings[0];

  EXPECT_FALSE(plan_node(kTwoSockets.unbound(2), {}, 1).ranks[0].communication_core);
  EXPECT_FALSE(plan_node(kTwoSockets.unbound(16), {}, 2).ranks[0].communication_core);  // 3 cores
  EXPECT_FALSE(plan_node(kTwoSockets.unbound(2), threads(24), 2).ranks[0].communication_core);
}

TEST(BindingPlan, InputRunsOnIdleHardwareThreads) {
  EXPECT_EQ(plan_node(kTwoSockets.unbound(1), {}).ranks[0].input_threads, 6);        // 48 / 8
  EXPECT_EQ(plan_node(kTwoSockets.unbound(48), {}).ranks[0].input_threads, 1);       // 1 / 8
  EXPECT_EQ(plan_node(MadeUpMachine{48}.unbound(1), {}).ranks[0].input_threads, 1);  // none idle
  EXPECT_EQ(plan_node(kTwoSockets.unbound(2), {{}, 5, {}}).ranks[0].input_threads, 5);
}

TEST(BindingPlan, WarnsOfRemoteMemoryThatCanBeAvoided) {
  const Placement lone = plan_node(kTwoSockets.unbound(1), threads(24));
  EXPECT_TRUE(warns(lone, "rank 0 with 24 threads lies on 2 NUMA nodes"));
  EXPECT_TRUE(warns(lone, "try --bind"));
  EXPECT_FALSE(warns(plan_node(kTwoSockets.unbound(1), {}), "NUMA"));
  EXPECT_FALSE(warns(plan_node(kTwoSockets.unbound(1), {24, {}, true}), "NUMA"));
}

TEST(BindingPlan, WarnsOfIdleCores) {
  std::vector<RankPlace> places;  // bound to four cores each by somebody
  for (int rank = 0; rank < 3; ++rank) {
    places.push_back(kCloud.place(rank, run(4 * rank, 4 * rank + 4)));
  }
  const Placement plan = plan_node(places, {});
  EXPECT_TRUE(warns(plan, "36 cores of 48 idle"));
  EXPECT_TRUE(warns(plan, "mpirun -np 48 --bind-to core"));
}

TEST(BindingPlan, WarnsOfTwoRanksOnOneCore) {
  const Placement plan = plan_node({kCloud.place(0, {0, 48}), kCloud.place(1, {1, 49}),
                                    kCloud.place(2, {2}), kCloud.place(3, {50})},
                                   threads(1));
  EXPECT_TRUE(warns(plan, "ranks 2 and 3 share physical core 2"));
  EXPECT_TRUE(warns(plan, "mpirun -np 4 --map-by slot:PE=12 --bind-to core"));
}

TEST(DivideCores, NothingWhereThereIsTooLittle) {
  const RankPlace mask = MadeUpMachine{2}.place(0, run(0, 2));
  RankPlan one, two;
  two.threads = 2;
  EXPECT_FALSE(divide_cores(mask, {&two, &one}));
  EXPECT_TRUE(divide_cores(mask, {&one, &one}));
}

TEST(RangeText, AsTasksetWritesIt) {
  EXPECT_EQ(range_text({}), "");
  EXPECT_EQ(range_text({5}), "5");
  EXPECT_EQ(range_text({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
}

TEST(PlacementMap, SaysWhereEveryRankRuns) {
  EXPECT_EQ(map_of(plan_node(kTwoSockets.unbound(4), {}, 2))[1],
            "rank 1 on a: cores 12-22 (NUMA node 0, hardware threads 12-22,60-70), 11 threads, 1 "
            "for input, communication on hardware thread 23, bound");
}

TEST(PlacementMap, HasOneLineForRanksThatAreAlike) {
  EXPECT_EQ(map_of(plan_node(MadeUpMachine{2}.unbound(96), {})),
            std::vector<std::string>{"ranks 0 to 95 on a: cores 0-1 (NUMA node 0, hardware threads "
                                     "0-1), 1 thread, 1 for input"});
}

TEST(PlacementMap, HasOneLineForManyRanksWithCoresInTheirOrder) {
  std::vector<RankPlace> places;
  for (int rank = 0; rank < 48; ++rank) places.push_back(kCloud.place(rank, {rank, rank + 48}));
  const std::vector<std::string> map = map_of(plan_node(places, {}));
  ASSERT_EQ(map.size(), 1u);
  EXPECT_TRUE(
      map[0].starts_with("ranks 0 to 47 on a: cores 0-47 (NUMA node 0, hardware threads "
                         "0-95), in this order 1 core each, 1 thread"))
      << map[0];
  places.resize(8);  // few: each has its line
  EXPECT_EQ(map_of(plan_node(places, {})).size(), 8u);
  std::swap(places[2].cpus, places[5].cpus);
  std::swap(places[2].core_of_cpu, places[5].core_of_cpu);
  EXPECT_TRUE(map_of(plan_node(places, {}))[2].starts_with("rank 2 on a: core 5 "));
}

}  // namespace
}  // namespace cputrain::placement
