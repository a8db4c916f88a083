// Threads planned on made-up machines.
#include "system/placement/placement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/system/placement/made_up_machine.h"

namespace cputrain::placement {
namespace {

TEST(PlanThreads, OneRankTakesAllCores) {
  const Placement plan = plan_node(kCloud.unbound(1), {});
  EXPECT_EQ(threads_of(plan), Threads{48});
  EXPECT_EQ(plan.lines.front(), "1 rank x 48 threads on 48 cores (96 hardware threads)");
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PlanThreads, ARankForEveryHardwareThread) {
  const Placement plan = plan_node(kCloud.unbound(96), {});
  EXPECT_EQ(threads_of(plan), Threads(96, 1));
  EXPECT_EQ(plan.lines.front(),
            "96 ranks x 1 thread on 48 cores (96 hardware threads), each bound to one core");
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_NE(plan.warnings[0].find("48 physical cores"), std::string::npos) << plan.warnings[0];
}

TEST(PlanThreads, ARankForEveryHardwareThreadBound) {
  std::vector<RankPlace> places;
  for (int cpu = 0; cpu < 96; ++cpu) places.push_back(kCloud.place(cpu, {cpu}));
  const Placement plan = plan_node(places, {});
  EXPECT_EQ(threads_of(plan), Threads(96, 1));
  EXPECT_EQ(plan.lines.front(),
            "96 ranks x 1 thread on 48 cores (96 hardware threads), each bound to one core");
}

TEST(PlanThreads, ARankForEveryCore) {
  std::vector<RankPlace> places;
  for (int core = 0; core < 48; ++core) places.push_back(kCloud.place(core, {core, core + 48}));
  const Placement plan = plan_node(places, {});
  EXPECT_EQ(threads_of(plan), Threads(48, 1));
  EXPECT_TRUE(plan.warnings.empty()) << plan.warnings[0];
}

TEST(PlanThreads, UnboundRanksDivideTheCores) {
  EXPECT_EQ(threads_of(plan_node(kCloud.unbound(4), {})), Threads(4, 12));
  EXPECT_EQ(threads_of(plan_node(kCloud.unbound(5), {})), Threads(5, 9));  // 48 / 5
  EXPECT_EQ(threads_of(plan_node(kCloud.unbound(3), {})), Threads(3, 16));
  EXPECT_TRUE(plan_node(kCloud.unbound(5), {}).warnings.empty());
}

TEST(PlanThreads, WithoutHyperThreads) {
  const MadeUpMachine machine{48};
  const Placement plan = plan_node(machine.unbound(48), {});
  EXPECT_EQ(threads_of(plan), Threads(48, 1));
  EXPECT_EQ(plan.lines.front(), "48 ranks x 1 thread on 48 cores, each bound to one core");
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PlanThreads, ARankForEverySocket) {
  const MadeUpMachine machine{24, 2};
  auto socket = [&](int first) {
    auto cpus = run(first, first + 12), second = run(first + 24, first + 36);
    cpus.insert(cpus.end(), second.begin(), second.end());
    return cpus;
  };
  const Placement plan = plan_node({machine.place(0, socket(0)), machine.place(1, socket(12))}, {});
  EXPECT_EQ(threads_of(plan), (Threads{12, 12}));
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PlanThreads, RanksWithDifferentMasks) {
  const MadeUpMachine machine{8};
  const Placement plan = plan_node(
      {machine.place(0, run(0, 6)), machine.place(1, run(6, 8)), machine.place(2, run(6, 8))}, {});
  EXPECT_EQ(threads_of(plan), (Threads{6, 1, 1}));
  EXPECT_EQ(plan.lines.front(), "1 rank x 6 threads, 2 ranks x 1 thread on 8 cores");
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PlanThreads, OverlappingMasksShareOnlyWhatOverlaps) {
  const MadeUpMachine machine{6};
  // cores 2 and 3 are for both: 2 + 2/2 each
  EXPECT_EQ(threads_of(plan_node({machine.place(0, run(0, 4)), machine.place(1, run(2, 6))}, {})),
            (Threads{3, 3}));
}

TEST(PlanThreads, AControlGroupsQuotaCounts) {
  const MadeUpMachine machine{48, 2, 3.0};
  const Placement one = plan_node(machine.unbound(1), {});
  EXPECT_EQ(threads_of(one), Threads{3});
  EXPECT_EQ(one.lines.front(),
            "1 rank x 3 threads on 48 cores (96 hardware threads), limited to 3 CPUs of time");
  EXPECT_TRUE(one.warnings.empty());
  EXPECT_EQ(threads_of(plan_node(machine.unbound(3), {})), Threads(3, 1));

  const Placement four = plan_node(machine.unbound(4), {});
  EXPECT_EQ(threads_of(four), Threads(4, 1));
  ASSERT_EQ(four.warnings.size(), 1u);
  EXPECT_NE(four.warnings[0].find("3 CPUs"), std::string::npos) << four.warnings[0];

  EXPECT_EQ(threads_of(plan_node(MadeUpMachine{8, 1, 2.5}.unbound(1), {})), Threads{2});
  EXPECT_EQ(threads_of(plan_node(MadeUpMachine{8, 1, 0.5}.unbound(1), {})), Threads{1});
  EXPECT_EQ(threads_of(plan_node(MadeUpMachine{8, 1, 64}.unbound(1), {})), Threads{8});
}

TEST(PlanThreads, AContainerOfThreeCoresOnALargeMachine) {
  const MadeUpMachine machine{3};  // hwloc shows what the container may use
  EXPECT_EQ(threads_of(plan_node(machine.unbound(1), {})), Threads{3});
  EXPECT_EQ(threads_of(plan_node(machine.unbound(2), {})), (Threads{1, 1}));
}

TEST(PlanThreads, OneCoreEachWhileOthersIdle) {
  const Placement one = plan_node({kCloud.place(0, {0, 48})}, {});
  EXPECT_EQ(threads_of(one), Threads{1});
  ASSERT_EQ(one.warnings.size(), 1u);
  EXPECT_NE(one.warnings[0].find("--bind-to none"), std::string::npos) << one.warnings[0];
  EXPECT_NE(one.warnings[0].find("ppr:1:node:PE=48"), std::string::npos) << one.warnings[0];

  const Placement two = plan_node({kCloud.place(0, {0, 48}), kCloud.place(1, {1, 49})}, {});
  EXPECT_EQ(threads_of(two), (Threads{1, 1}));
  ASSERT_EQ(two.warnings.size(), 1u);
  EXPECT_NE(two.warnings[0].find("ppr:2:node:PE=24"), std::string::npos) << two.warnings[0];

  // asked for, so it is what the person wants
  EXPECT_TRUE(plan_node({kCloud.place(0, {0, 48})}, threads(1)).warnings.empty());
}

TEST(PlanThreads, OneCoreEachWhereThereAreNoOthers) {
  const MadeUpMachine machine{2};
  const Placement plan = plan_node({machine.place(0, {0}), machine.place(1, {1})}, {});
  EXPECT_EQ(threads_of(plan), (Threads{1, 1}));
  EXPECT_EQ(plan.lines.front(), "2 ranks x 1 thread on 2 cores, each bound to one core");
  EXPECT_TRUE(plan.warnings.empty()) << plan.warnings[0];
}

TEST(PlanThreads, TwoRanksOnOneCore) {
  const MadeUpMachine machine{2};
  const Placement plan = plan_node({machine.place(0, {0}), machine.place(1, {0})}, {});
  EXPECT_EQ(threads_of(plan), (Threads{1, 1}));
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_NE(plan.warnings[0].find("2 threads on 1 hardware thread"), std::string::npos);
  EXPECT_NE(plan.warnings[0].find("has 2 cores"), std::string::npos) << plan.warnings[0];

  // the two hardware threads of one core
  const Placement pair = plan_node({kCloud.place(0, {0}), kCloud.place(1, {48})}, {});
  EXPECT_EQ(threads_of(pair), (Threads{1, 1}));
  ASSERT_FALSE(pair.warnings.empty());
  EXPECT_NE(pair.warnings[0].find("share physical core 0"), std::string::npos) << pair.warnings[0];
}

TEST(PlanThreads, MoreRanksThanCores) {
  const Placement plan = plan_node(MadeUpMachine{2}.unbound(8), {});
  EXPECT_EQ(threads_of(plan), Threads(8, 1));
  EXPECT_EQ(plan.lines.front(), "8 ranks x 1 thread on 2 cores");
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_NE(plan.warnings[0].find("8 threads on 2 hardware threads"), std::string::npos);
  EXPECT_NE(plan.warnings[0].find("fewer ranks"), std::string::npos) << plan.warnings[0];
  EXPECT_EQ(plan.warnings[0].find("--bind-to none"), std::string::npos) << plan.warnings[0];
}

TEST(PlanThreads, WhatIsAskedWins) {
  EXPECT_EQ(threads_of(plan_node(kCloud.unbound(2), threads(5))), (Threads{5, 5}));
  EXPECT_TRUE(plan_node(kCloud.unbound(2), threads(24)).warnings.empty());
  const Placement many = plan_node(kCloud.unbound(2), threads(96));
  EXPECT_EQ(threads_of(many), (Threads{96, 96}));
  ASSERT_EQ(many.warnings.size(), 1u);
  EXPECT_NE(many.warnings[0].find("192 threads on 96"), std::string::npos) << many.warnings[0];
}

TEST(PlanThreads, MoreAskedThanTheMaskHolds) {
  const MadeUpMachine machine{8};
  const Placement plan =
      plan_node({machine.place(0, run(0, 7)), machine.place(1, {7})}, threads(3));
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_NE(plan.warnings[0].find("rank 1 may use 1 hardware thread for 3 threads"),
            std::string::npos)
      << plan.warnings[0];
}

// Containers of a machine, each with a control group of its own.
TEST(PlanThreads, EveryControlGroupHasItsQuota) {
  const auto of_groups = [](std::vector<RankPlace> places, const std::vector<double>& quotas) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i].cpu_group = quotas[i] > 0 ? i + 1 : 0;
      places[i].cpu_quota = quotas[i];
    }
    return plan_node(places, {});
  };
  const MadeUpMachine machine{8};
  const Placement alike = of_groups(machine.unbound(4), {2, 2, 2, 2});
  EXPECT_EQ(threads_of(alike), Threads(4, 2));
  EXPECT_TRUE(alike.warnings.empty());
  EXPECT_NEAR(alike.crowding, 1, 1e-9);
  EXPECT_EQ(threads_of(of_groups(machine.unbound(4), {1, 1, 1, 1})), Threads(4, 1));
  EXPECT_EQ(threads_of(of_groups(machine.unbound(2), {1, 0})), (Threads{1, 4}));
  EXPECT_EQ(threads_of(of_groups(machine.unbound(2), {3, 1.5})), (Threads{3, 1}));
}

TEST(RankPlace, ComesBackFromItsText) {
  const MadeUpMachine machine{3, 2, 2.5};
  for (const RankPlace& place : {machine.place(7, machine.all()), machine.place(0, {4})}) {
    EXPECT_EQ(rank_place_from(to_text(place)), place);
  }
}

TEST(RankPlace, OtherTextIsAnError) {
  const std::string text = to_text(kCloud.place(1, run(0, 4)));
  EXPECT_THROW(rank_place_from(""), Error);
  EXPECT_THROW(rank_place_from("hello"), Error);
  EXPECT_THROW(rank_place_from(text.substr(0, text.size() - 3)), Error);
}

TEST(RankPlace, IsTakenFromTheMachine) {
  Machine machine;
  machine.host = "my laptop\n";
  machine.kernel = "0a1b-2c";
  machine.cpu_group = 77;
  machine.cores = 4;
  machine.cpu_quota = 1.5;
  machine.team_limit = 3;
  machine.team_limited_by = "OMP_THREAD_LIMIT";
  machine.hardware_threads = 8;
  machine.numa_nodes = 2;
  machine.allowed_cpus = {2, 3};
  machine.core_of_cpu = {1, 1};
  machine.numa_of_cpu = {0, 0};
  const Binder binder{Binder::Kind::openmp, "OMP_PROC_BIND,OMP_PLACES", "OMP_PROC_BIND"};
  const RankPlace place = place_of(5, machine, true, binder);
  EXPECT_EQ(place, (RankPlace{5,
                              "my laptop\n",
                              "0a1b-2c",
                              4,
                              8,
                              2,
                              1.5,
                              77,
                              3,
                              "OMP_THREAD_LIMIT",
                              true,
                              binder,
                              {2, 3},
                              {1, 1},
                              {0, 0}}));
  EXPECT_EQ(rank_place_from(to_text(place)), place);
  machine.kernel = "";
  const RankPlace other = place_of(5, machine, true, binder);
  EXPECT_EQ(rank_place_from(to_text(other)), other);
}

std::vector<RankPlace> with_team_limit(std::vector<RankPlace> places, int limit) {
  for (RankPlace& place : places) {
    place.team_limit = limit;
    place.team_limited_by = "OMP_THREAD_LIMIT";
  }
  return places;
}

TEST(TeamLimit, HoldsWhateverWasAskedFor) {
  const MadeUpMachine machine{8};
  for (const auto& [asked, threads_of_each] : std::vector<std::pair<PlacementRequest, int>>{
           {{}, 3}, {threads(6), 3}, {threads(3), 3}, {threads(2), 2}}) {
    const Placement plan = plan_node(with_team_limit(machine.unbound(2), 3), asked);
    EXPECT_EQ(threads_of(plan), Threads(2, threads_of_each));
    const bool fewer = asked.threads.value_or(4) > 3;
    ASSERT_EQ(plan.limits.size(), fewer ? 1u : 0u);
    if (!fewer) continue;
    const std::string text =
        "2 ranks x 3 threads, not " + std::to_string(asked.threads.value_or(4));
    EXPECT_EQ(plan.limits[0].substr(0, text.size()), text);
    EXPECT_NE(plan.limits[0].find("OMP_THREAD_LIMIT allows"), std::string::npos);
  }
}

TEST(TeamLimit, IsSaidOnceAndNotAsCoresThatIdle) {
  const Placement plan = plan_node(with_team_limit(MadeUpMachine{8}.unbound(1), 1), {});
  EXPECT_EQ(threads_of(plan), Threads{1});
  EXPECT_EQ(plan.limits.size(), 1u);
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(TeamLimit, OfOneHostIsNotThatOfOthers) {
  const MadeUpMachine machine{2};
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    RankPlace place = with_team_limit({machine.place(rank, machine.all())}, rank)[0];
    place.host = rank == 0 ? "a" : "b";
    texts.push_back(to_text(place));
  }
  const Placement plan = plan_job(texts, {0, 1}, threads(2));
  EXPECT_EQ(threads_of(plan), (Threads{2, 1}));
  ASSERT_EQ(plan.limits.size(), 1u);
  EXPECT_EQ(plan.limits[0].substr(0, 8), "host b: ");
}

/// Ranks of a node, as they call it and its kernel.
struct NodeOfTest {
  std::string host;
  int ranks;
  std::string kernel = "-";
};

Placement plan_of(const std::vector<NodeOfTest>& job, const MadeUpMachine& machine,
                  const PlacementRequest& request = {}) {
  std::vector<std::string> texts;
  std::vector<int> nodes;
  for (std::size_t node = 0; node < job.size(); ++node) {
    for (RankPlace place : machine.unbound(job[node].ranks)) {
      place.rank = static_cast<int>(texts.size());
      place.host = job[node].host;
      place.kernel = job[node].kernel;
      texts.push_back(to_text(place));
      nodes.push_back(static_cast<int>(node));
    }
  }
  return plan_job(texts, nodes, request);
}

TEST(PlanJob, OneLineForNinetySixRanks) {
  const Placement plan = plan_of({{"a", 96}}, kCloud);
  EXPECT_EQ(threads_of(plan), Threads(96, 1));
  EXPECT_EQ(
      plan.lines,
      std::vector<std::string>{
          "host a: 96 ranks x 1 thread on 48 cores (96 hardware threads), each bound to one core"});
  EXPECT_EQ(plan.warnings.size(), 1u);
}

TEST(PlanJob, CrowdingIsThatOfTheFullestHost) {
  EXPECT_NEAR(plan_of({{"a", 96}}, kCloud).crowding, 1, 1e-9);
  EXPECT_NEAR(plan_of({{"a", 1}, {"b", 5}}, MadeUpMachine{2}).crowding, 2.5, 1e-9);
  EXPECT_NEAR(plan_of({{"a", 6}}, MadeUpMachine{8, 1, 1.5}).crowding, 4, 1e-9);
}

TEST(PlanJob, EqualHostsShareALine) {
  const Placement plan =
      plan_of({{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}, {"e", 1}}, MadeUpMachine{4});
  EXPECT_EQ(threads_of(plan), (Threads{2, 2, 2, 2, 2, 2, 2, 2, 3}));
  EXPECT_EQ(plan.lines, (std::vector<std::string>{
                            "4 hosts (a, b, c, ...), each: 2 ranks x 2 threads on 4 cores, each "
                            "bound to cores of its own",
                            "host e: 1 rank x 3 threads on 4 cores, one core per rank kept for "
                            "communication"}));
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PlanJob, RanksOfANodeNeedNotBeNeighbours) {
  std::vector<std::string> texts;
  for (const RankPlace& place : MadeUpMachine{4}.unbound(3)) texts.push_back(to_text(place));
  EXPECT_EQ(threads_of(plan_job(texts, {0, 1, 0}, {})), (Threads{2, 3, 2}));
}

TEST(PlanJob, WarningsNameTheirHosts) {
  const Placement plan = plan_of({{"a", 4}, {"b", 2}}, MadeUpMachine{2});
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_TRUE(plan.warnings[0].starts_with("host a: 4 ranks x 1 thread")) << plan.warnings[0];
}

// Containers have names of their own, and two machines may have one.
TEST(PlanJob, NamesOfHostsDecideNothing) {
  const MadeUpMachine machine{4};
  std::vector<std::string> texts;
  for (RankPlace place : machine.unbound(5)) {
    place.host = "c-" + std::to_string(place.rank);
    texts.push_back(to_text(place));
  }
  const auto first = [&](std::size_t count) {
    return std::vector(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const Placement two = plan_job(first(2), {0, 0}, {});
  EXPECT_EQ(threads_of(two), (Threads{2, 2}));
  EXPECT_EQ(two.lines, std::vector<std::string>{"host c-0+c-1: 2 ranks x 2 threads on 4 cores, "
                                                "each bound to cores of its own"});
  EXPECT_EQ(two.hosts(), (std::vector<std::string>{"c-0", "c-1"}));
  EXPECT_TRUE(plan_job(texts, {0, 0, 0, 0, 0}, {}).lines[0].starts_with("host c-0+c-1+c-2+...: "));
  const Placement same = plan_of({{"a", 1}, {"a", 1}}, machine);
  EXPECT_EQ(threads_of(same), (Threads{3, 3}));  // and one for communication
  EXPECT_TRUE(same.lines[0].starts_with("2 hosts (a, a), each: 1 rank")) << same.lines[0];
}

TEST(PlanJob, NodesOfOneSystemThatCrowdItAreNamed) {
  const MadeUpMachine machine{2};
  const Placement plan = plan_of({{"a", 1, "x"}, {"b", 1, "y"}, {"c", 1, "x"}}, machine);
  EXPECT_EQ(threads_of(plan), (Threads{2, 2, 2}));
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_TRUE(
      plan.warnings[0].starts_with("2 hosts (a, c) are one machine, by its boot id: 2 "
                                   "ranks x 2 threads make 4 threads on 2 hardware threads"))
      << plan.warnings[0];
  EXPECT_NEAR(plan.crowding, 2, 1e-9);
  EXPECT_TRUE(plan_of({{"a", 1, "x"}, {"c", 1, "x"}}, machine, threads(1)).warnings.empty());
  EXPECT_TRUE(plan_of({{"a", 1}, {"c", 1}}, machine).warnings.empty());  // nobody knows
}

}  // namespace
}  // namespace cputrain::placement
