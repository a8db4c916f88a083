// backends/sim/layer_costs.h, which needs no simulator.
#include "backends/sim/layer_costs.h"

#include <gtest/gtest.h>

#include "model/graph.h"

namespace cputrain::sim {
namespace {

constexpr double kWeights = 4.0 * (48 * 10 + 10);  // bytes of the dense layer
constexpr double kMaps = 4.0 * 48;                 // bytes of its input

model::Graph dense_graph() {
  model::Graph graph({4, 4, 3});
  graph.add(model::Flatten{});
  graph.add(model::Dense{10}, "dense");
  return graph;
}

/// A layer of 1 s and 0.5 s an image, backward twice that, on a core that moves 1000 bytes a
/// second.
simulation::CostTable costs(double core_bytes = 1000) {
  simulation::CostTable table;
  table.sizes = {2, 4};
  table.workspace_bytes = {2, 4};
  table.by_active.push_back({.active = 1,
                             .fma_gflops = 100,
                             .triad_gbs = core_bytes / 1e9,
                             .update_seconds_per_number = 3,
                             .sum_gbs = 5e-9,
                             .layers = {{"dense", {2, 3}, {4, 6}}}});
  return table;
}

/// Half as quick in arithmetic, four times in memory.
simulation::Platform other() {
  simulation::Platform platform;
  platform.cores = 1;
  platform.cpu = simulation::PlatformCpu{.flops_per_cycle = 50, .clock = {{1, 1.0}}};
  platform.core_gbs = platform.node_gbs = 4000 / 1e9;
  return platform;
}

simulation::Platform here(const simulation::CostTable& table) {
  return simulation::find_platform("here", table);
}

}  // namespace

TEST(LayerCosts, AreAsMeasuredHere) {
  const simulation::CostTable table = costs(1e9);
  const LayerCosts costs_here(dense_graph(), here(table), table, 0, {});
  const SimulatedWork work = costs_here.pass(0, Way::forward, 4);
  EXPECT_DOUBLE_EQ(work.seconds, 3);
  EXPECT_DOUBLE_EQ(work.bytes, kWeights + 4 * kMaps);
  EXPECT_DOUBLE_EQ(costs_here.pass(0, Way::backward, 4).bytes, 2 * (kWeights + 4 * kMaps));
  EXPECT_DOUBLE_EQ(costs_here.pass(0, Way::backward, 3).seconds, 5);
  EXPECT_EQ(costs_here.pass(0, Way::forward, 0).seconds, 0);
  EXPECT_DOUBLE_EQ(costs_here.update_seconds(2), 6);
}

TEST(LayerCosts, HaveNotMovedMoreThanTheirTimeAllows) {
  const simulation::CostTable table = costs(1000);
  const LayerCosts costs_here(dense_graph(), here(table), table, 0, {});
  EXPECT_DOUBLE_EQ(costs_here.pass(0, Way::forward, 2).bytes, 2000);
}

// Reading 1960 bytes of weights explains all of the fixed second.
TEST(LayerCosts, ChangeWithArithmeticAndWithMemory) {
  const simulation::CostTable table = costs(1000);
  const LayerCosts elsewhere(dense_graph(), other(), table, 0, {});
  EXPECT_NEAR(elsewhere.pass(0, Way::forward, 4).seconds, 2 * 2 + 1 / 4.0, 1e-9);
  EXPECT_DOUBLE_EQ(elsewhere.update_seconds(2), 6 / 4.0);
  EXPECT_DOUBLE_EQ(elsewhere.sum_seconds(10), 2 / 4.0);
}

TEST(LayerCosts, OfAShardAreItsPart) {
  const simulation::CostTable table = costs(1e9);
  const LayerCosts costs_here(dense_graph(), here(table), table, 0, {});
  const SimulatedWork part = costs_here.shard(0, Way::forward, 0.25, 8);
  EXPECT_NEAR(part.seconds, 0.25 * 5, 1e-9);  // 1 s and 8 halves
  EXPECT_DOUBLE_EQ(part.bytes, 0.25 * (kWeights + 8 * kMaps));
}

// Nothing was measured with threads, so that they share everything, and each has a core's
// bandwidth.
TEST(LayerCosts, OfThreadsAreTheirShare) {
  const simulation::CostTable table = costs(1000);
  simulation::Platform platform = other();
  platform.cores = 4;
  platform.cpu->clock = {{1, 1.0}, {4, 1.0}};
  const LayerCosts one(dense_graph(), platform, table, 0, {1, 1});
  const LayerCosts four(dense_graph(), platform, table, 0, {1, 4});
  EXPECT_DOUBLE_EQ(four.sum_seconds(10), one.sum_seconds(10) / 4);
  EXPECT_DOUBLE_EQ(four.update_seconds(2), one.update_seconds(2) / 4);
  EXPECT_NEAR(four.pass(0, Way::forward, 4).seconds, one.pass(0, Way::forward, 4).seconds / 4,
              1e-9);
  EXPECT_NEAR(four.pass(0, Way::forward, 2).bytes, one.pass(0, Way::forward, 2).bytes, 1e-6);
}

TEST(LayerCosts, SayWhenMemoryMayDecide) {
  const simulation::CostTable table = costs(1000);
  const LayerCosts costs_here(dense_graph(), here(table), table, 0, {});
  EXPECT_TRUE(costs_here.may_wait_for_memory({1, 600}));
  EXPECT_FALSE(costs_here.may_wait_for_memory({1, 400}));
}

}  // namespace cputrain::sim
