// From hwloc's description of machines that are not here to the plan of their ranks.
#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>

#include <string>
#include <thread>

#include "backends/topology/binding.h"
#include "backends/topology/topology.h"
#include "system/placement/launch_words.h"
#include "tests/system/placement/made_up_machine.h"

namespace cputrain::topology {
namespace {

/// A tree that hwloc makes from a description.
class SyntheticTree {
 public:
  explicit SyntheticTree(const std::string& description) {
    EXPECT_EQ(hwloc_topology_init(&tree_), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(tree_, description.c_str()), 0) << description;
    EXPECT_EQ(hwloc_topology_load(tree_), 0);
  }
  ~SyntheticTree() { hwloc_topology_destroy(tree_); }
  SyntheticTree(const SyntheticTree&) = delete;
  SyntheticTree& operator=(const SyntheticTree&) = delete;

  /// What a container's cpuset leaves to be seen.
  void restrict_to(const std::vector<int>& cpus) {
    const hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (const int cpu : cpus) hwloc_bitmap_set(set, static_cast<unsigned>(cpu));
    EXPECT_EQ(hwloc_topology_restrict(tree_, set, 0), 0);
    hwloc_bitmap_free(set);
  }
  placement::Machine machine(const std::vector<int>& mask) const {
    placement::Machine machine = machine_of(tree_, mask);
    machine.host = "a";
    return machine;
  }

 private:
  hwloc_topology_t tree_ = nullptr;
};

std::vector<placement::RankPlace> unbound(const placement::Machine& machine, int ranks) {
  std::vector<placement::RankPlace> places;
  for (int rank = 0; rank < ranks; ++rank)
    places.push_back(placement::place_of(rank, machine, false, {}));
  return places;
}

/// Two sockets of 24 cores with two hardware threads each, numbered as Linux does on such machines:
/// first one of every core.
std::string cloud_vm() {
  std::string indexes;
  for (int core = 0; core < 48; ++core) {
    indexes += (core ? "," : "") + std::to_string(core) + "," + std::to_string(core + 48);
  }
  return "pack:2 [numa(memory=206158430208)] l3:1(size=40370176) l2:24(size=1048576) core:1 "
         "pu:2(indexes=" +
         indexes + ")";
}

/// The core's number as a container sees it that may use one hardware thread alone.
int core_seen_in_container(const std::string& description, int cpu) {
  hwloc_topology_t whole = nullptr, seen = nullptr;
  char* text = nullptr;
  int length = 0;
  hwloc_topology_init(&whole);
  hwloc_topology_set_flags(whole, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_synthetic(whole, description.c_str());
  hwloc_topology_load(whole);
  const hwloc_bitmap_t set = hwloc_bitmap_alloc();
  hwloc_bitmap_only(set, static_cast<unsigned>(cpu));
  EXPECT_EQ(hwloc_topology_allow(whole, set, nullptr, HWLOC_ALLOW_FLAG_CUSTOM), 0);
  hwloc_bitmap_free(set);
  EXPECT_EQ(hwloc_topology_export_xmlbuffer(whole, &text, &length, 0), 0);
  hwloc_topology_init(&seen);
  hwloc_topology_set_xmlbuffer(seen, text, length);
  EXPECT_EQ(hwloc_topology_load(seen), 0);
  const placement::Machine machine = machine_of(seen, {cpu});
  EXPECT_EQ(machine.cores, 1);
  hwloc_topology_destroy(seen);
  hwloc_free_xmlbuffer(whole, text);
  hwloc_topology_destroy(whole);
  return machine.core_of_cpu.at(0);
}

// Containers of a machine see different parts of it, and must not take them for one.
TEST(SyntheticTopology, CoresHaveOneNumberInAllContainers) {
  EXPECT_EQ(core_seen_in_container("core:2 pu:2", 0), core_seen_in_container("core:2 pu:2", 1));
  EXPECT_EQ(core_seen_in_container("core:2 pu:2", 2), core_seen_in_container("core:2 pu:2", 3));
  EXPECT_NE(core_seen_in_container("core:2 pu:2", 1), core_seen_in_container("core:2 pu:2", 2));
}

TEST(SyntheticTopology, AVmOf96Vcpus) {
  const SyntheticTree tree(cloud_vm());
  const placement::Machine machine = tree.machine(placement::run(0, 96));
  EXPECT_EQ(machine.sockets, 2);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.cores, 48);
  EXPECT_EQ(machine.hardware_threads, 96);
  EXPECT_EQ(machine.allowed_cores, 48);
  EXPECT_NEAR(machine.memory_gb, 2 * 206.158430208, 1e-6);
  for (int cpu = 0; cpu < 96; ++cpu) {
    EXPECT_EQ(machine.core_of_cpu[cpu], cpu % 48);
    EXPECT_EQ(machine.numa_of_cpu[cpu], cpu % 48 / 24);
  }
  EXPECT_EQ(machine.cpu_id.caches.front(), "L2 1024 KiB x 48");

  const placement::Placement plan = placement::plan_node(unbound(machine, 4), {});
  EXPECT_EQ(plan.ranks[3].cores, placement::run(36, 48));
  EXPECT_EQ(plan.ranks[3].numa, std::vector<int>{1});
  EXPECT_EQ(plan.ranks[3].threads, 12);
}

TEST(SyntheticTopology, AMaskOfOneSocket) {
  const SyntheticTree tree(cloud_vm());
  const placement::Machine machine = tree.machine(placement::run(24, 48));
  EXPECT_EQ(machine.allowed_cores, 24);
  EXPECT_EQ(machine.cores, 48);
  EXPECT_EQ(machine.numa_of_cpu, std::vector<int>(24, 1));
}

TEST(SyntheticTopology, TwoSocketsWithoutHyperThreads) {
  const SyntheticTree tree("pack:2 [numa] core:8 pu:1");
  const placement::Machine machine = tree.machine(placement::run(0, 16));
  EXPECT_EQ(machine.cores, 16);
  EXPECT_EQ(machine.hardware_threads, 16);
  const placement::Placement plan = placement::plan_node(unbound(machine, 2), {});
  EXPECT_EQ(plan.ranks[0].cpus, placement::run(0, 8));
  EXPECT_EQ(plan.ranks[1].cpus, placement::run(8, 16));
  EXPECT_EQ(plan.lines.front(), "2 ranks x 8 threads on 16 cores, each bound to cores of its own");
}

TEST(SyntheticTopology, AContainerOfThreeCores) {
  SyntheticTree tree("pack:2 [numa] core:8 pu:1");
  tree.restrict_to({6, 7, 8});  // two of the first socket, one of the second
  const placement::Machine machine = tree.machine({6, 7, 8});
  EXPECT_EQ(machine.cores, 3);
  EXPECT_EQ(machine.hardware_threads, 3);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.numa_of_cpu, (std::vector<int>{0, 0, 1}));

  EXPECT_EQ(placement::plan_node(unbound(machine, 1), {}).ranks[0].threads, 3);
  const placement::Placement three = placement::plan_node(unbound(machine, 3), {});
  EXPECT_EQ(three.ranks[0].cpus, std::vector<int>{6});
  EXPECT_EQ(three.ranks[1].cpus, std::vector<int>{7});
  EXPECT_EQ(three.ranks[2].cpus, std::vector<int>{8});
}

TEST(SyntheticTopology, FourNumaNodesInASocket) {
  const SyntheticTree tree("pack:1 group:4 [numa] core:4 pu:1");
  const placement::Machine machine = tree.machine(placement::run(0, 16));
  EXPECT_EQ(machine.numa_nodes, 4);
  const placement::Placement plan = placement::plan_node(unbound(machine, 8), {});
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(plan.ranks[rank].numa, std::vector<int>{rank / 2});
  }
}

std::vector<std::string> typed(const placement::LaunchHost& host, bool root = false,
                               bool mpi = true) {
  std::vector<std::string> lines;
  for (const placement::LaunchLine& launch : placement::launch_lines(host, root, mpi))
    lines.push_back(launch.line);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LaunchLines, AVmOf96Vcpus) {
  EXPECT_EQ(typed({48, 96, 2, 0}),
            (Lines{"mpirun -np 48 --bind-to core ./cputrain ...",
                   "mpirun -np 96 --use-hwthread-cpus --bind-to hwthread ./cputrain ...",
                   "mpirun -np 2 --map-by ppr:1:numa:PE=24 --bind-to core ./cputrain ...",
                   "./cputrain ..."}));
}

TEST(LaunchLines, AsRootOnTwoCores) {
  EXPECT_EQ(
      typed({2, 2, 1, 0}, true),
      (Lines{"mpirun --allow-run-as-root -np 2 --bind-to core ./cputrain ...", "./cputrain ..."}));
}

TEST(LaunchLines, AQuotaIsNotBound) {
  EXPECT_EQ(typed({48, 96, 2, 3.5}),
            (Lines{"mpirun -np 3 --bind-to none ./cputrain ...", "./cputrain ..."}));
}

TEST(LaunchLines, OneProcessWhereThereIsNothingToDivide) {
  EXPECT_EQ(typed({1, 2, 1, 0}), Lines{"./cputrain ..."});
  EXPECT_EQ(typed({48, 96, 2, 0}, false, false), Lines{"./cputrain ..."});
}

TEST(LaunchLines, MoreRanksThanTheMachineHas) {
  EXPECT_EQ(placement::mpirun_options({2, 2, 1, 0}, 5), "-np 5 --oversubscribe --bind-to none");
}

TEST(BindThisThread, ChangesTheMaskOfTheThreadAndItsChildren) {
  const std::vector<int> allowed = read_machine().allowed_cpus;
  const int last = allowed.back();
  std::thread([&] {
    ASSERT_TRUE(bind_this_thread({last}));
    std::thread([&] {
      cpu_set_t mask;
      ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
      EXPECT_EQ(CPU_COUNT(&mask), 1);
      EXPECT_TRUE(CPU_ISSET(last, &mask));
    }).join();
  }).join();
  EXPECT_EQ(read_machine().allowed_cpus, allowed);  // this thread stays where it was
}

TEST(BindThisThread, SaysWhereItCannot) {
  EXPECT_FALSE(bind_this_thread({}));
  EXPECT_FALSE(bind_this_thread({100'000}));
}

}  // namespace
}  // namespace cputrain::topology
