#include <gtest/gtest.h>

#include <array>
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
  forecast.fill(cell, std::span(&result, 1));
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
  forecast.fill(cell, std::span(&result, 1));
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 7);
}

/// Twelve cores whose likely share of the peak is half of what the costs' core reached.
class PeakShares : public ::testing::Test {
 protected:
  /// By whose peak a core computes, for the cell's own simulation and those of its range.
  std::vector<double> flops(const json& share, const std::string& processor = "x") {
    json file = platform();
    file["cpu"]["share_of_peak"] = share;
    file["cpu"]["share_kept"] = {{{"active_cores", 1}, {"part", 1}},
                                 {{"active_cores", 5}, {"part", 0.5}}};
    CostTable table = costs_of_graph();
    table.cpu = processor;
    const Forecast forecast(platform_from_json(file, "five"), table, graph_, 1, 1000);
    text_ = forecast.share_text();
    std::vector<double> found;
    for (const SimulationJob& job : forecast.jobs({.cpus = 5, .batch = 40, .ranks = 5}, {})) {
      found.push_back(job.platform.cpu->flops_per_cycle);
      kept_.push_back(!job.platform.cpu->kept.empty());
    }
    return found;
  }

  static model::Graph some_graph() {
    model::Graph graph({8, 8, 3});
    graph.add(model::Flatten{});
    graph.add(model::Dense{.units = 100});
    return graph;
  }
  /// An image takes 3 s, where the peak would do what it asks for in 2.4 s.
  CostTable costs_of_graph() const {
    CostTable table = costs();
    table.by_active[0].fma_gflops = graph_.training_flops() / 2.4e9;
    return table;
  }

  const model::Graph graph_ = some_graph();
  static constexpr double own_ = 0.8;
  std::string text_;
  std::vector<bool> kept_;
};

void expect_near(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-9) << i;
}

TEST_F(PeakShares, AreToldWithThatOfTheCosts) {
  flops({{"low", own_ / 4}, {"likely", own_ / 2}, {"high", own_}});
  EXPECT_EQ(text_,
            "a core reaches 0.40 (0.20 to 0.80) of its peak of multiply-adds, that of the costs "
            "0.80");
}

TEST_F(PeakShares, DecideHowLongACoreComputesAndWhatItsRangeIs) {
  const json share{{"model", "x"},       {"image_size", 8},  {"low", own_ / 4},
                   {"likely", own_ / 2}, {"high", own_ * 2}, {"kind", "Other"}};
  expect_near(flops(share), {32, 128, 16});
  EXPECT_EQ(kept_, (std::vector{true, false, true}));
  expect_near(flops(share, "Other(R) Chip"), {64, 128, 16});  // costs of such a core
}

TEST_F(PeakShares, OfOlderKernelsLeaveWhatTheMeasuredCoreReachesInTheRange) {
  expect_near(flops({{"model", "x"},
                     {"image_size", 8},
                     {"low", own_ / 4},
                     {"likely", own_ / 2},
                     {"high", own_ / 2}}),
              {32, 64, 16});
}

TEST_F(PeakShares, OfAnotherNetworkWidenTheRangeAlone) {
  for (const auto& [model, size] : {std::pair{"y", 8}, {"x", 9}}) {
    expect_near(
        flops({{"model", model}, {"image_size", size}, {"low", 1}, {"likely", 1.5}, {"high", 2}}),
        {64, 64, 32});
  }
}

TEST_F(PeakShares, ThatWereMeasuredHaveNoRange) {
  expect_near(flops({{"low", own_ / 2}, {"likely", own_ / 2}, {"high", own_ / 2}}), {32});
  EXPECT_EQ(text_.find(" to "), std::string::npos) << text_;
}

TEST_F(PeakShares, MakeTheRangeOfAFigure) {
  json file = platform();
  file["cpu"]["share_of_peak"] = {{"low", own_ / 4}, {"likely", own_ / 2}, {"high", own_}};
  const Forecast forecast(platform_from_json(file, "five"), costs_of_graph(), graph_, 1, 1000);
  std::vector<SimulationResult> results(3);
  for (std::size_t i = 0; i < 3; ++i) {
    results[i].steps = 1;
    results[i].images = 1000;
    const double seconds = std::array{10.0, 5.0, 20.0}.at(i);
    results[i].repeats = {{seconds, {.forward = seconds}, 0}};
  }
  cells::Cell cell{.cpus = 5, .batch = 40, .ranks = 5};
  forecast.fill(cell, results);
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 10);
  EXPECT_EQ(cell.repeats, std::vector{10.0});
  EXPECT_DOUBLE_EQ(cell.spread->low, 5);
  EXPECT_DOUBLE_EQ(cell.spread->high, 20);
  results[2].failure = "stopped";  // a range that lacks an end is none
  cells::Cell other{.cpus = 5, .batch = 40, .ranks = 5};
  forecast.fill(other, results);
  EXPECT_EQ(other.reason, "stopped");
  EXPECT_FALSE(other.seconds_per_epoch);
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
  EXPECT_EQ(forecast.jobs({.cpus = 3, .ranks = 3}, {}).front().platform.cores, 2);
  EXPECT_EQ(forecast.jobs({.cpus = 4, .ranks = 1, .threads = 4}, {}).front().platform.cores, 2);
  EXPECT_EQ(forecast.obstacle({.cpus = 10, .ranks = 10}), "");
  EXPECT_NE(forecast.obstacle({.cpus = 11, .ranks = 11}), "");
  const Forecast fixed(platform_from_json(platform(), "five"), costs(), model::Graph({8, 8, 3}), 1,
                       1000);
  EXPECT_EQ(fixed.machine().cpus_per_core, 0);
  EXPECT_EQ(fixed.jobs({.cpus = 3, .ranks = 3}, {}).front().platform.cores, 5);
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
