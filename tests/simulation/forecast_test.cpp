#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "simulation/forecast.h"
#include "simulation/platform.h"

namespace cputrain::simulation {
namespace {

using nlohmann::json;

CostTable costs() {
  CostTable table;
  table.cpu = table.host = table.build = table.model = table.network = "x";
  table.image_size = 8;
  table.classes = 1;
  table.cores = table.hardware_threads = 2;
  table.memory_bytes = 1e9;
  table.sizes = {1, 8};
  table.workspace_bytes = {1e6, 8e6};
  for (const int active : {1, 2}) {
    table.by_active.push_back({.active = active,
                               .fma_gflops = 384,
                               .triad_gbs = 8.0 + 3 * active,
                               .update_seconds_per_number = 1e-9,
                               .sum_gbs = 10,
                               .spread = 0.1,
                               .layers = {{"conv", {1, 8}, {2, 16}}}});
  }
  return table;
}

json platform() {
  return {{"format", "cputrain platform 1"},
          {"name", "five"},
          {"description", "five cores"},
          {"sources", {"none"}},
          {"nodes", 4},
          {"cores", 5},
          {"threads_per_core", 2},
          {"memory_gb", 16},
          {"cpu",
           {{"flops_per_cycle", 64},
            {"clock_ghz", {{{"active_cores", 1}, {"ghz", 3}}, {{"active_cores", 5}, {"ghz", 2}}}},
            {"second_thread_gain", 1.25}}},
          {"memory", {{"core_gbs", 8}, {"node_gbs", 20}, {"latency_us", 1}}},
          {"network", {{"gbps", 10}, {"latency_us", 30}, {"efficiency", 0.94}}}};
}

// Files of earlier versions have the kernels behind the network's hash.
TEST(Costs, SayWhatComputedThem) {
  CostTable table = costs();
  table.network = "0123456789abcdef, of an earlier version";
  table.kernels = "with Winograd, sgd";
  json file = to_json(table);
  EXPECT_EQ(costs_from_json(file, "x").kernels, "with Winograd, sgd");
  file.erase("kernels");
  EXPECT_EQ(costs_from_json(file, "x").kernels, "of an earlier version");
  file["network"] = "made up";
  EXPECT_EQ(costs_from_json(file, "x").kernels, "");
}

TEST(Platform, SlowsCoresByClockAndThreadsThatShareThem) {
  const Platform five = platform_from_json(platform(), "five");
  EXPECT_NEAR(slowdown(five, costs(), {0, 1}), 384 / (64 * 3.0), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {2, 3}), 384 / (64 * 2.5), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {1, 6}), 3, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {0, 6}), 3 * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {5, 6}), 3 * 2 / 1.25, 1e-12);
  // Three ranks of two threads: 0 and 1, 2 and 3, 4 and the second one of core 0.
  EXPECT_NEAR(slowdown(five, costs(), {0, 3, 2}), 3 * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {1, 3, 2}), 3, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), {2, 3, 2}), 3 * 2 / 1.25, 1e-12);
}

json growing() {
  json file = platform();
  file["nodes"] = 1;
  file["grows_with_cell"] = true;
  file.erase("network");
  return file;
}

// n CPUs are n hardware threads, two a core; a core alone takes 8 GB/s, all of them 20.
TEST(Platform, MayGrowWithTheCell) {
  const Platform five = platform_from_json(growing(), "five");
  EXPECT_EQ(five.most_ranks(), 10);
  const struct {
    int cpus, cores, threads;
    double gbs;
  } expected[] = {{1, 1, 1, 8},  {2, 1, 2, 8},  {3, 2, 2, 16},
                  {4, 2, 2, 16}, {6, 3, 2, 20}, {10, 5, 2, 20}};
  for (const auto& [cpus, cores, threads, gbs] : expected) {
    const Platform own = five.of_cell(cpus);
    EXPECT_EQ(own.cores, cores) << cpus;
    EXPECT_EQ(own.hardware_threads(), cores * threads) << cpus;
    EXPECT_DOUBLE_EQ(own.node_gbs, gbs) << cpus;
    EXPECT_DOUBLE_EQ(own.memory_gb, 16) << cpus;
    EXPECT_NO_THROW(platform_from_json(to_json(own), "of a cell"));
  }
  // Two ranks of one core compute 1.25 times what one does; of four ranks each has half of that.
  EXPECT_NEAR(slowdown(five.of_cell(1), costs(), {0, 1}), 384 / (64 * 3.0), 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(2), costs(), {0, 2}), 384 / (64 * 3.0) * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(2), costs(), {1, 2}), 384 / (64 * 3.0) * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(4), costs(), {3, 4}), 384 / (64 * 2.75) * 2 / 1.25, 1e-12);
  const Platform fixed = platform_from_json(platform(), "five");
  EXPECT_EQ(json(to_json(fixed.of_cell(1))), json(to_json(fixed)));
}

// 4 GB with 2 CPUs and 20 with 10: 2 GB a CPU between; a smaller machine has no less than the
// first.
TEST(Platform, MayHaveMemoryByTheCellsCpus) {
  json file = growing();
  file["memory_gb"] = {{{"cpus", 2}, {"gb", 4}}, {{"cpus", 10}, {"gb", 20}}};
  Platform five = platform_from_json(file, "five");
  EXPECT_EQ(json(to_json(five))["memory_gb"], file["memory_gb"]);
  for (const auto& [cpus, gb] : {std::pair{1, 4}, {2, 4}, {3, 6}, {7, 14}, {10, 20}}) {
    EXPECT_DOUBLE_EQ(five.of_cell(cpus).memory_gb, gb) << cpus;
    EXPECT_EQ(json(to_json(five.of_cell(cpus)))["memory_gb"], gb) << cpus;
  }
  five.set_memory(7);
  EXPECT_DOUBLE_EQ(five.of_cell(1).memory_gb, 7);
  EXPECT_DOUBLE_EQ(five.of_cell(10).memory_gb, 7);
}

// The whole machine is the same one, whichever way its CPUs are counted.
TEST(Platform, OfVirtualCpusEndsAsTheWholeMachine) {
  const Platform vcpus = find_platform("skylake-vcpus", costs()).of_cell(96);
  const Platform whole = find_platform("skylake-96", costs());
  EXPECT_EQ(vcpus.cores, whole.cores);
  EXPECT_EQ(vcpus.threads_per_core, whole.threads_per_core);
  EXPECT_EQ(vcpus.node_gbs, whole.node_gbs);
  EXPECT_EQ(vcpus.core_gbs, whole.core_gbs);
  EXPECT_DOUBLE_EQ(slowdown(vcpus, costs(), {95, 96}), slowdown(whole, costs(), {95, 96}));
}

TEST(Platform, OfTheCostsIsAsMeasured) {
  const Platform here = find_platform("here", costs());
  EXPECT_EQ(here.most_ranks(), 2);
  EXPECT_DOUBLE_EQ(here.core_gbs, 11);
  EXPECT_DOUBLE_EQ(here.node_gbs, 14);
  EXPECT_EQ(slowdown(here, costs(), {1, 2}), 1);
}

TEST(Platform, BuiltInOnesReadAndWriteAlike) {
  ASSERT_GE(platform_names().size(), 8u);
  for (const std::string& name : platform_names()) {
    const Platform built_in = find_platform(name, costs());
    EXPECT_EQ(built_in.name, name);
    const json text = to_json(built_in);
    EXPECT_EQ(json(to_json(platform_from_json(text, name))), text) << name;
  }
  const Platform vm = find_platform("skylake-96", costs());
  EXPECT_EQ(vm.most_ranks(), 96);
  EXPECT_GE(find_platform("cluster-8x10g", costs()).most_ranks(), 1024);
  EXPECT_GE(find_platform("cluster-96x100g", costs()).most_ranks(), 1024);
}

void expect_refused(const json& changed, const std::string& word) {
  try {
    platform_from_json(changed, "file.json");
    FAIL() << word << " was accepted: " << changed.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("file.json"), std::string::npos) << error.what();
  }
}

TEST(Platform, NamesWhatIsWrongInAFile) {
  const auto changed = [](const std::function<void(json&)>& change) {
    json file = platform();
    change(file);
    return file;
  };
  expect_refused(changed([](json& p) { p["coers"] = 5; }), "coers");
  expect_refused(changed([](json& p) { p["cpu"]["clock"] = 5; }), "clock");
  expect_refused(changed([](json& p) { p["nodes"] = 0; }), "nodes");
  expect_refused(changed([](json& p) { p["cores"] = 2.5; }), "cores");
  expect_refused(changed([](json& p) { p.erase("network"); }), "network");
  expect_refused(changed([](json& p) { p["memory"]["core_gbs"] = "8"; }), "core_gbs");
  expect_refused(changed([](json& p) { p["network"]["gbps"] = -1; }), "gbps");
  expect_refused(changed([](json& p) { p["cpu"]["clock_ghz"][1]["active_cores"] = 1; }), "ascend");
  expect_refused(changed([](json& p) { p["format"] = "other"; }), "format");
  expect_refused(json::array(), "object");
  json odd = growing();
  odd["grows_with_cell"] = 1;
  expect_refused(odd, "grows_with_cell must be true or false");
  odd = growing();
  odd["nodes"] = 2;
  expect_refused(odd, "nodes is more than 1");
  odd["nodes"] = 1;
  odd["memory_gb"] = {{{"cpus", 2}, {"gb", 4}}, {{"cpus", 2}, {"gb", 8}}};
  expect_refused(odd, "cpus must ascend");
  odd["memory_gb"] = json::array();
  expect_refused(odd, "memory_gb");
  odd["memory_gb"] = {{{"cpus", 2}, {"gb", 4}}};
  odd["grows_with_cell"] = false;
  expect_refused(odd, "memory_gb must be a number");
  odd = growing();
  odd.erase("cpu");
  expect_refused(odd, "must have a cpu");
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Platform, BecomesHostsAndLinks) {
  const Platform five = platform_from_json(platform(), "five");  // ten hardware threads a node
  EXPECT_EQ(nodes_used(five, 10), 1);
  EXPECT_EQ(nodes_used(five, 11), 2);
  EXPECT_EQ(nodes_used(five, 3, 3), 1);
  EXPECT_EQ(nodes_used(five, 4, 3), 2);
  const std::string hosts = simgrid_hosts(3, 25);  // three nodes: 9 + 8 + 8
  EXPECT_EQ(count(hosts, "node-0\n"), 9);
  EXPECT_EQ(count(hosts, "node-1\n"), 8);
  EXPECT_EQ(count(hosts, "node-2\n"), 8);
  const std::string xml = simgrid_platform(five, nodes_used(five, 25));
  EXPECT_EQ(count(xml, "<host "), 3);
  EXPECT_EQ(count(xml, "<route "), 9);
  EXPECT_EQ(count(xml, "bandwidth=\"1175000000Bps\""), 6);  // 0.94 * 10 / 8 GB/s, up and down
  EXPECT_EQ(count(xml, "bandwidth=\"20000000000Bps\""), 3);
  EXPECT_EQ(count(simgrid_platform(five, 1), "<link "), 2);  // one node has no network
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
  EXPECT_EQ(table.measured_threads(), 2);
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
  EXPECT_DOUBLE_EQ(cell.spread->min, 25);
  EXPECT_DOUBLE_EQ(cell.spread->max, 50);
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
