#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "scaling/simulation/forecast.h"
#include "scaling/simulation/platform.h"
#include "tests/scaling/simulation/made_machine.h"

namespace cputrain::simulation {
namespace {

TEST(Costs, SayWhatComputedThem) {
  CostTable table = costs();
  table.network = "0123456789abcdef";
  table.kernels = "with Winograd, sgd";
  json file = to_json(table);
  EXPECT_EQ(costs_from_json(file, "x").kernels, "with Winograd, sgd");
  file.erase("kernels");
  EXPECT_EQ(costs_from_json(file, "x").kernels, "");
}

TEST(Costs, ReadAsTheyWereWritten) {
  const json text = to_json(costs());
  EXPECT_EQ(json(to_json(costs_from_json(text, "costs"))), text);
  EXPECT_EQ(costs().when(1).active, 1);
  EXPECT_EQ(costs().when(96).active, 2);
}

TEST(Costs, LieBetweenThoseOfTheMeasuredRanks) {
  CostTable table = costs();
  table.by_active.push_back(table.by_active.back());
  table.by_active.back().active = 6;
  table.by_active.back().layers[0].forward = {3, 24};
  table.by_active.back().spread = 0.3;
  const CostsWhenActive three = table.when(3);
  EXPECT_EQ(three.active, 3);
  EXPECT_DOUBLE_EQ(three.layers[0].forward[1], 12);
  EXPECT_DOUBLE_EQ(three.spread, 0.15);
}

// One thread needs 8 s for 8 images beside another, a rank of two 5 s: 2 s are not shared.
TEST(Costs, ShareAmongThreadsWhatTheyWereMeasuredToShare) {
  CostTable table = costs();
  EXPECT_DOUBLE_EQ(table.with_threads(table.when(4), 4).layers[0].forward[1], 2);
  table.by_active.push_back(table.by_active.front());
  table.by_active.back().threads = 2;
  table.by_active.back().layers[0] = {"conv", {0.5, 5}, {1, 8}};
  const auto with = [&](int threads) { return table.with_threads(table.when(2), threads); };
  EXPECT_DOUBLE_EQ(with(2).layers[0].forward[1], 5);
  EXPECT_DOUBLE_EQ(with(4).layers[0].forward[1], 2 + 6.0 / 4);
  EXPECT_DOUBLE_EQ(with(2).layers[0].backward[1], 8);
  EXPECT_DOUBLE_EQ(with(4).layers[0].backward[1], 4);
  EXPECT_EQ(with(1).layers[0].forward[1], 8);
  EXPECT_EQ(table.when(2).threads, 1);
}

TEST(Costs, AreSteadyWhereNoMeasurementDrifted) {
  CostTable table = costs();
  table.by_active[0].drift = 0.1;
  table.by_active[1].drift = 0.25;
  EXPECT_DOUBLE_EQ(table.drift(), 0.25);
  EXPECT_TRUE(table.is_steady());
  table.by_active[0].drift = 0.26;
  EXPECT_DOUBLE_EQ(table.drift(), 0.26);
  EXPECT_FALSE(table.is_steady());
}

TEST(Costs, RefuseWhatIsOdd) {
  const auto refused = [](const std::function<void(json&)>& change) {
    json file = to_json(costs());
    change(file);
    EXPECT_THROW(costs_from_json(file, "costs"), Error) << file.dump();
  };
  refused([](json& c) { c["sizes"] = {8, 1}; });
  refused([](json& c) { c["sizes"] = {1, 2, 3}; });
  refused([](json& c) { c["by_active"] = json::array(); });
  refused([](json& c) { c["by_active"][0]["active"] = 2; });
  refused([](json& c) { c["by_active"][1]["layers"][0]["forward"] = {1, -1}; });
  refused([](json& c) { c["by_active"][0]["spread"] = nullptr; });
  refused([](json& c) { c["by_active"][0]["threads"] = 2; });
  refused([](json& c) { c["by_active"][1]["layers"][0]["name"] = "other"; });
  refused([](json& c) { c["by_active"][1]["layers"] = json::array(); });
  refused([](json& c) {
    c["by_active"][1]["threads"] = 2;
    c["by_active"].push_back(c["by_active"][0]);
  });
}

cells::Cell cell_with(const Budget& budget) {
  cells::Cell cell{.cpus = 20, .batch = 40, .ranks = 20};
  cell.seconds_per_epoch = 100;
  cell.budget = budget;
  return cell;
}

TEST(Forecast, NamesWhatTakesTheEpoch) {
  const Platform cluster = platform_from_json(platform(), "five");
  const auto limit = [&](const Budget& budget, double memory_stall) {
    return limits_of(cell_with(budget), cluster, memory_stall).what;
  };
  EXPECT_EQ(limit({.forward = 35, .backward = 60, .other = 5}, 0), "compute");
  EXPECT_EQ(limit({.forward = 30, .backward = 50, .allreduce_exposed = 20}, 0), "communication");
  EXPECT_EQ(limit({.forward = 30, .backward = 50, .straggler_wait = 20}, 0), "imbalance");
  EXPECT_EQ(limit({.forward = 35, .backward = 60, .optimizer = 5}, 40), "memory bandwidth");
  // Memory counts from a quarter of the epoch, a wait from a tenth: the smaller cause is named.
  EXPECT_EQ(limit({.forward = 30, .backward = 58, .straggler_wait = 12}, 20), "imbalance");
  EXPECT_EQ(limit({.forward = 30, .backward = 58, .straggler_wait = 12}, 30), "memory bandwidth");
}

TEST(Forecast, SaysWhatOfComputingIsWaitingForMemory) {
  const Platform cluster = platform_from_json(platform(), "five");
  EXPECT_EQ(
      limits_of(cell_with({.forward = 35, .backward = 60, .other = 5}), cluster, 22).why,
      "forward and backward take 95 % of the epoch (computing 73 %, waiting for memory 22 %), "
      "with 2 images per rank and step");
}

TEST(Forecast, ScalesStepsToAnEpoch) {
  const model::Graph graph({8, 8, 3});
  const Forecast forecast(platform_from_json(platform(), "five"), costs(), graph, 1, 1000);
  cells::Cell cell{.cpus = 20, .batch = 40, .ranks = 20};
  EXPECT_EQ(forecast.obstacle(cell), "");
  EXPECT_NE(forecast.obstacle({.cpus = 41, .batch = 40, .ranks = 41}), "");
  SimulationResult result;
  result.steps = 2;
  result.images = 80;
  for (const double seconds : {4.0, 2.0, 3.0}) {
    result.repeats.push_back({seconds, {.forward = seconds}, 0});
  }
  forecast.fill(cell, result);
  EXPECT_EQ(cell.status, cells::CellStatus::simulated);
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 37.5);  // 25 steps of 1.5 s
  EXPECT_DOUBLE_EQ(cell.spread->low, 25);
  EXPECT_DOUBLE_EQ(cell.spread->high, 50);
  EXPECT_DOUBLE_EQ(cell.budget->forward, 37.5);
  EXPECT_DOUBLE_EQ(*cell.images_per_second, 1000 / 37.5);
}

// 700 of 1000 images are one step and 300 the next: no two full ones.
TEST(Forecast, CountsTheImagesOfAShortStep) {
  const Forecast forecast(platform_from_json(platform(), "five"), costs(), model::Graph({8, 8, 3}),
                          1, 1000);
  cells::Cell cell{.cpus = 20, .batch = 700, .ranks = 20};
  SimulationResult result;
  result.steps = 2;
  result.images = 1000;
  result.repeats = {{7, {.forward = 7}, 0}};
  forecast.fill(cell, result);
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 7);
}

// Latency alone: the fewest messages; bandwidth alone: the fewest bytes.
TEST(Forecast, SumsOverNodesByLatencyAndBandwidth) {
  Platform cluster = platform_from_json(platform(), "five");
  const auto choice = [&](int nodes, double bytes) {
    return usual_allreduce(nodes, 10 * nodes, cluster, bytes);
  };
  EXPECT_EQ(choice(1, 1e8), "shm");
  EXPECT_EQ(choice(128, 10), "hierarchical+recursive-doubling");
  EXPECT_EQ(choice(128, 5e7), "hierarchical+rabenseifner");
  EXPECT_EQ(choice(3, 1e9), "hierarchical+ring");
}

TEST(Forecast, AMachineThatGrowsIsTheCellsOwn) {
  const Forecast forecast(platform_from_json(growing(), "five"), costs(), model::Graph({8, 8, 3}),
                          1, 1000);
  EXPECT_EQ(forecast.machine().cpus_per_core, 2);
  EXPECT_EQ(forecast.job({.cpus = 3, .ranks = 3}, {}).platform.cores, 2);
  EXPECT_EQ(forecast.job({.cpus = 4, .ranks = 1, .threads = 4}, {}).platform.cores, 2);
  EXPECT_EQ(forecast.obstacle({.cpus = 10, .ranks = 10}), "");
  EXPECT_NE(forecast.obstacle({.cpus = 11, .ranks = 11}), "");
  const Forecast fixed(platform_from_json(platform(), "five"), costs(), model::Graph({8, 8, 3}), 1,
                       1000);
  EXPECT_EQ(fixed.machine().cpus_per_core, 0);
  EXPECT_EQ(fixed.job({.cpus = 3, .ranks = 3}, {}).platform.cores, 5);
}

TEST(Forecast, DividesCpusAmongThreads) {
  const Forecast forecast(platform_from_json(platform(), "five"), costs(), model::Graph({8, 8, 3}),
                          1, 1000);
  const auto obstacle = [&](int ranks, int threads) {
    return forecast.obstacle({.cpus = ranks * threads, .ranks = ranks, .threads = threads});
  };
  EXPECT_EQ(obstacle(12, 3), "");  // three of them a node, one hardware thread of ten stays idle
  EXPECT_NE(obstacle(13, 3).find("12 ranks of 3 threads"), std::string::npos);
  EXPECT_NE(obstacle(1, 11), "");
}

}  // namespace
}  // namespace cputrain::simulation
