#include "scaling/cells/run_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace cputrain::cells {
namespace {

RunDevices devices_in(const std::string& environment) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "environment.json") << environment;
  return devices_of_run(folder.path());
}

TEST(RunDevicesTest, AreWhatTheRunRecorded) {
  const RunDevices two = devices_in(R"({"gpus": {"count": 2, "name": "NVIDIA H100"}})");
  EXPECT_EQ(two.count, 2);
  EXPECT_EQ(two.name, "NVIDIA H100");
  EXPECT_FALSE(two.emulated);
  EXPECT_TRUE(devices_in(R"({"emulated": true})").emulated);
}

TEST(RunDevicesTest, NameTheProcessorToo) {
  const std::string gpus = R"("gpus": {"count": 2, "name": "A"})";
  const RunDevices both =
      devices_in(R"({"machine": {"cpu_id": {"vendor": "x", "model": 7}}, )" + gpus + "}");
  EXPECT_EQ(both.origin.cpu_id, (placement::CpuId{.vendor = "x", .model = 7}));
  EXPECT_EQ(both.count, 2);
  EXPECT_FALSE(devices_in(R"({"machine": {"cpu": "AMD EPYC"}})").origin.cpu_id.known());
  const RunDevices odd =
      devices_in(R"({"machine": {"cpu_id": {"vendor": "x", "model": "7"}}, )" + gpus + "}");
  EXPECT_FALSE(odd.origin.cpu_id.known());  // nor a part of it
  EXPECT_EQ(odd.count, 2);
}

TEST(RunDevicesTest, ADamagedRecordSaysNothing) {
  const testing::TemporaryFolder empty;
  EXPECT_EQ(devices_of_run(empty.path()).count, 0);
  for (const char* odd : {"", "[]", "{", R"({"gpus": 5})", R"({"gpus": {"count": -1, "name": ""}})",
                          R"({"gpus": {"count": 1e300, "name": ""}})",
                          R"({"gpus": {"count": 99999999999, "name": 7}})",
                          R"({"emulated": "yes", "gpus": {"count": 2, "name": "x"}})"}) {
    const RunDevices found = devices_in(odd);
    EXPECT_EQ(found.count, 0) << odd;
    EXPECT_EQ(found.name, "") << odd;
    EXPECT_FALSE(found.emulated) << odd;
  }
  const std::string long_name(2000, 'x');
  EXPECT_EQ(devices_in(R"({"gpus": {"count": 1, "name": ")" + long_name + R"("}})").name, "");
  // What is odd elsewhere hides no emulation.
  EXPECT_TRUE(devices_in(R"({"emulated": true, "gpus": {"count": "x"}})").emulated);
}

TEST(RunDevicesTest, ACellHasTheFewestAndAllNames) {
  Cell cell;
  cell.backend = "cuda";
  cell.cpus = cell.ranks = cell.gpus = 4;
  combine_devices(cell, {{4, "B"}, {2, "A"}, {0, ""}, {4, "B"}});
  EXPECT_EQ(cell.gpus, 2);
  EXPECT_EQ(cell.device, "A and B");
  Cell cpus;
  combine_devices(cpus, {{1, "A"}});
  EXPECT_EQ(cpus.gpus, 0);
  EXPECT_EQ(cpus.device, "");
}

TEST(RunDevicesTest, ACellHasTheProcessorThatAllRepeatsHave) {
  RunDevices zen4, zen5;
  zen4.origin.cpu_id = {.vendor = "AuthenticAMD", .family = 25, .model = 17};
  zen5.origin.cpu_id = {.vendor = "AuthenticAMD", .family = 26, .model = 2};
  Cell cell;
  for (const char* backend : {"cpu", "cuda"}) {
    cell.backend = backend;
    combine_devices(cell, {zen4, zen4});
    EXPECT_EQ(cell.origin.cpu_id, zen4.origin.cpu_id);
    for (const RunDevices& other : {zen5, RunDevices{}}) {
      combine_devices(cell, {zen4, other});
      EXPECT_FALSE(cell.origin.cpu_id.known());
    }
  }
  combine_devices(cell, {});
  EXPECT_FALSE(cell.origin.cpu_id.known());
}

TEST(RunDevicesTest, ACellHasTheKernelsAndTheCommitThatAllRepeatsHave) {
  const auto of = [](int kernels, const std::string& commit, const std::string& microcode) {
    return devices_in(fmt::format(
        R"({{"build": "{}", "kernels_version": {}, "machine": {{"cpu_id": {{"family": 6, "microcode": "{}"}}}}}})",
        commit, kernels, microcode));
  };
  Cell cell;
  combine_devices(cell, {of(13, "abc", "0x1"), of(13, "def", "0x2")});
  EXPECT_EQ(cell.origin.kernels_version, 13);
  EXPECT_EQ(cell.origin.commit, "");
  EXPECT_EQ(cell.origin.cpu_id.family, 6);  // microcode changes with the system
  combine_devices(cell, {of(13, "abc", "0x1"), of(12, "abc", "0x1")});
  EXPECT_EQ(cell.origin.kernels_version, std::nullopt);
  EXPECT_EQ(cell.origin.commit, "abc");
  EXPECT_EQ(devices_in(R"({"kernels_version": -1})").origin.kernels_version, std::nullopt);
}

}  // namespace
}  // namespace cputrain::cells
