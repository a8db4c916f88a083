// What GPUs are at, of a table that answers for three of them.
#include "backends/nvml/nvml.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cputrain::nvml {
namespace {

constexpr int kNotSupported = 3;

/// GPUs 0 and 1 have NVLink; 2 is behind the other CPU, and says nothing of its use.
std::intptr_t number_of(Device* device) { return reinterpret_cast<std::intptr_t>(device) - 1; }

Calls three_gpus() {
  Calls calls;
  calls.handle_by_uuid = [](const char* uuid, Device** device) {
    const std::string text = uuid;
    if (text.substr(0, 35) != "GPU-01234567-89ab-cdef-0123-4567890") return 6;  // not found
    *device = reinterpret_cast<Device*>(std::intptr_t{text[39] - '0'} + 1);
    return 0;
  };
  calls.memory_info = [](Device* device, Memory* memory) {
    *memory = {100, static_cast<unsigned long long>(60 + number_of(device)), 40};
    return 0;
  };
  calls.utilization = [](Device* device, Utilization* busy) {
    if (number_of(device) == 2) return kNotSupported;
    *busy = {12, 3};
    return 0;
  };
  calls.processes = [](Device* device, unsigned* count, void* infos) {
    EXPECT_EQ(infos, nullptr);
    *count = static_cast<unsigned>(number_of(device));
    return *count == 0 ? 0 : 7;
  };
  calls.p2p_status = [](Device* a, Device* b, int capability, int* status) {
    EXPECT_EQ(capability, 2);
    *status = number_of(a) + number_of(b) == 1 ? 0 : 1;
    return 0;
  };
  calls.common_ancestor = [](Device*, Device*, int* level) {
    *level = 50;
    return 0;
  };
  calls.pcie_generation = [](Device*, unsigned* generation) {
    *generation = 5;
    return 0;
  };
  calls.pcie_width = [](Device*, unsigned* width) {
    *width = 16;
    return 0;
  };
  return calls;
}

compute::Device device(int index) {
  return {.index = index,
          .name = "GPU",
          .identity = "0123456789abcdef012345678900000" + std::to_string(index),
          .facts = ""};
}

TEST(Nvml, SaysWhatGpusAreAtAndHowTheyAreLinked) {
  const Calls calls = three_gpus();
  const auto use = use_of(&calls, {device(0), device(1), device(2)});
  ASSERT_EQ(use.size(), 3u);
  EXPECT_EQ(use[0].busy_percent, 12);
  EXPECT_EQ(use[0].free_memory, 60u);
  EXPECT_EQ(use[0].processes, 0);
  EXPECT_EQ(use[0].links,
            (std::vector<std::string>{"PCIe 5 x16", "NVLink to 1", "over both CPUs to 2"}));
  EXPECT_EQ(use[1].processes, 1);
  EXPECT_EQ(use[1].links,
            (std::vector<std::string>{"PCIe 5 x16", "NVLink to 0", "over both CPUs to 2"}));
  EXPECT_EQ(use[2].busy_percent, std::nullopt);
  EXPECT_EQ(use[2].processes, 2);
}

/// A part of a GPU, or a container without its driver's library.
TEST(Nvml, LeavesUnknownWhatItIsNotTold) {
  const Calls calls = three_gpus();
  compute::Device stranger = device(0);
  stranger.identity = "emulated 0";
  for (const auto& use : {use_of(&calls, {stranger}), use_of(nullptr, {device(0)})}) {
    ASSERT_EQ(use.size(), 1u);
    EXPECT_EQ(use[0].busy_percent, std::nullopt);
    EXPECT_EQ(use[0].free_memory, std::nullopt);
    EXPECT_TRUE(use[0].links.empty());
  }
}

}  // namespace
}  // namespace cputrain::nvml
