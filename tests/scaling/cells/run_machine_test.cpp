#include "scaling/cells/run_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"

namespace cputrain::cells {
namespace {

nlohmann::json environment() {
  return {{"cputrain", "1.0"},
          {"libraries", {"oneDNN 2.6.3", "Open MPI 4.1.4"}},
          {"machine",
           {{"cpu", "AMD EPYC"},
            {"host", "vm"},
            {"cores", 2},
            {"hardware_threads", 4},
            {"memory_gb", 16.5}}}};
}

TEST(RunMachineTest, IsWhatTheRunRecorded) {
  const auto machine = machine_of_run(environment(), "here");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->cpu, "AMD EPYC");
  EXPECT_EQ(machine->host, "vm");
  EXPECT_EQ(machine->mpi, "Open MPI 4.1.4");
  EXPECT_EQ(machine->build, "cputrain 1.0; oneDNN 2.6.3, Open MPI 4.1.4");
  EXPECT_EQ(machine->cores, 2);
  EXPECT_EQ(machine->hardware_threads, 4);
  EXPECT_DOUBLE_EQ(machine->memory_bytes, 16.5e9);
  EXPECT_FALSE(machine->cpu_id.known());  // older runs have none
  auto named = environment();
  named["machine"]["cpu_id"] = {{"vendor", "AuthenticAMD"}, {"family", 25}};
  EXPECT_EQ(machine_of_run(named, "here")->cpu_id,
            (placement::CpuId{.vendor = "AuthenticAMD", .family = 25}));
}

TEST(RunMachineTest, RefusesWhatNoTableCanHold) {
  auto nowhere = environment();
  nowhere.erase("machine");
  EXPECT_FALSE(machine_of_run(nowhere, "here"));
  auto many = environment(), negative = environment(), other = environment();
  many["libraries"] = std::vector<std::string>(1000, std::string(100, 'x'));
  negative["machine"]["cores"] = -1;
  other["machine"]["cpu_id"] = "AuthenticAMD";
  for (const auto& odd : {many, negative, other, nlohmann::json::array()}) {
    EXPECT_THROW(machine_of_run(odd, "here"), Error) << odd.dump().substr(0, 99);
  }
}

}  // namespace
}  // namespace cputrain::cells
