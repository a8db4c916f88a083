// Which files are NCCL, what it may not do by itself, and what it takes.
#include "backends/nccl/library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <vector>

namespace cputrain::nccl {
namespace {

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "not set";
}

TEST(Library, MustBeThere) {
  const Library none = load("/no/such/libnccl.so.2");
  EXPECT_EQ(none.calls, nullptr);
  EXPECT_NE(none.why_none.find("/no/such/libnccl.so.2"), std::string::npos) << none.why_none;
  EXPECT_NE(none.remedy.find("libnccl2 of 2.19 or newer"), std::string::npos);
  const Library other = load("libm.so.6");
  EXPECT_EQ(other.why_none, "libm.so.6 has no function ncclGetVersion");
}

/// Both files have one function, which says the version: an old one is told by that, and not by
/// what it lacks.
TEST(Library, IsToldByItsVersionFirst) {
  const Library old = load(CPUTRAIN_NCCL_2_13);
  EXPECT_EQ(old.calls, nullptr);
  EXPECT_EQ(old.why_none, "NCCL 2.13.4 is older than 2.19");
  const Library torn = load(CPUTRAIN_NCCL_2_28);
  EXPECT_EQ(torn.calls, nullptr);
  EXPECT_NE(torn.why_none.find("has no function ncclGetErrorString"), std::string::npos)
      << torn.why_none;
}

/// What is set stays, also where it is what NCCL would do. A process loads it once, so this one is
/// another, which no test has used.
TEST(Library, HasWhatChangesBitsTurnedOffBeforeItIsLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto load_and_tell = [] {
    ::unsetenv("NCCL_NVLS_ENABLE");
    ::setenv("NCCL_GRAPH_REGISTER", "1", 1);
    library();
    std::cerr << value_of("NCCL_NVLS_ENABLE") << " and " << value_of("NCCL_GRAPH_REGISTER");
    std::exit(0);
  };
  EXPECT_EXIT(load_and_tell(), ::testing::ExitedWithCode(0), "^0 and 1$");
}

TEST(Library, SaysWhatSomebodyTurnedOnThatChangesBits) {
  struct Case {
    const char *value, *told;
  };
  for (const auto& [value, told] : std::vector<Case>{{"0", ""},
                                                     {"00", ""},
                                                     {"off", ""},
                                                     {"1", "NCCL_NVLS_ENABLE=1"},
                                                     {"2", "NCCL_NVLS_ENABLE=2"},
                                                     {"0x1", "NCCL_NVLS_ENABLE=0x1"},
                                                     {"", "NCCL_NVLS_ENABLE="}}) {
    ::setenv("NCCL_NVLS_ENABLE", value, 1);
    EXPECT_EQ(varying_bits(), told) << value;
  }
  ::unsetenv("NCCL_NVLS_ENABLE");
  EXPECT_EQ(varying_bits(), "");
}

/// NCCL's own log tells of blocks of 10,485,760 and 2,097,152 bytes, one of each per channel and
/// neighbour (github.com/NVIDIA/nccl/issues/1685).
TEST(Library, TakesMemoryByChannelsAndNeighbours) {
  constexpr std::size_t kBlocks = 10'485'760 + 2'097'152;
  EXPECT_EQ(estimated_memory(1), 0u);
  EXPECT_EQ(estimated_memory(3) - estimated_memory(2), 32 * kBlocks);
  EXPECT_GT(estimated_memory(2), 32 * kBlocks);
  EXPECT_EQ(estimated_memory(96), estimated_memory(3));
  EXPECT_NEAR(static_cast<double>(estimated_memory(8)), 1e9, 0.05e9);
}

}  // namespace
}  // namespace cputrain::nccl
