#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "scaling/simulation/forecast.h"
#include "scaling/simulation/platform.h"
#include "tests/scaling/simulation/made_machine.h"
#include "tests/support/refusal.h"

namespace cputrain::simulation {
namespace {

TEST(Platform, SlowsCoresByClockAndThreadsThatShareThem) {
  const Platform five = platform_from_json(platform(), "five");
  EXPECT_NEAR(slowdown(five, costs(), 0, {1}), 384 / (64 * 3.0), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 2, {3}), 384 / (64 * 2.5), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 1, {6}), 3, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 0, {6}), 3 * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 5, {6}), 3 * 2 / 1.25, 1e-12);
  // Three ranks of two threads: 0 and 1, 2 and 3, 4 and the second one of core 0.
  EXPECT_NEAR(slowdown(five, costs(), 0, {3, 2}), 3 * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 1, {3, 2}), 3, 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 2, {3, 2}), 3 * 2 / 1.25, 1e-12);
}

TEST(Platform, SlowsCoresThatKeepAPartOfTheirShare) {
  json file = platform();
  file["cpu"]["share_kept"] = {{{"active_cores", 1}, {"part", 1}},
                               {{"active_cores", 5}, {"part", 0.8}}};
  const Platform five = platform_from_json(file, "five");
  EXPECT_NEAR(slowdown(five, costs(), 0, {1}), 384 / (64 * 3.0), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 2, {3}), 384 / (64 * 2.5 * 0.9), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 0, {5}), 384 / (64 * 2 * 0.8), 1e-12);
  EXPECT_NEAR(slowdown(five, costs(), 0, {1, 5}), 384 / (64 * 2.0), 1e-12);  // costs say that
  EXPECT_EQ(json(to_json(five)), file);
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
  EXPECT_NEAR(slowdown(five.of_cell(1), costs(), 0, {1}), 384 / (64 * 3.0), 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(2), costs(), 0, {2}), 384 / (64 * 3.0) * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(2), costs(), 1, {2}), 384 / (64 * 3.0) * 2 / 1.25, 1e-12);
  EXPECT_NEAR(slowdown(five.of_cell(4), costs(), 3, {4}), 384 / (64 * 2.75) * 2 / 1.25, 1e-12);
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
  EXPECT_DOUBLE_EQ(slowdown(vcpus, costs(), 95, {96}), slowdown(whole, costs(), 95, {96}));
}

TEST(Platform, OfTheCostsIsAsMeasured) {
  const Platform here = find_platform("here", costs());
  EXPECT_EQ(here.most_ranks(), 2);
  EXPECT_DOUBLE_EQ(here.core_gbs, 11);
  EXPECT_DOUBLE_EQ(here.node_gbs, 14);
  EXPECT_EQ(slowdown(here, costs(), 1, {2}), 1);
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
  const std::string text =
      testing::refused(ExitCode::data, [&] { platform_from_json(changed, "file.json"); });
  EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_NE(text.find("file.json"), std::string::npos) << text;
}

TEST(Platform, NamesWhatIsWrongInAFile) {
  const auto changed = [](const std::function<void(json&)>& change) {
    json file = platform();
    change(file);
    return file;
  };
  expect_refused(changed([](json& p) { p["coers"] = 5; }), "coers");
  expect_refused(changed([](json& p) { p["cpu"]["clock"] = 5; }), "clock");
  expect_refused(changed([](json& p) {
                   p["cpu"]["share_of_peak"] = {{"low", 2}, {"likely", 1}, {"high", 3}};
                 }),
                 "likely");
  expect_refused(changed([](json& p) { p["cpu"]["share_kept"] = json::array(); }), "share_kept");
  expect_refused(changed([](json& p) {
                   p["cpu"]["share_kept"] = {{{"active_cores", 1}, {"part", 1.5}}};
                 }),
                 "part");
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

}  // namespace
}  // namespace cputrain::simulation
