// Which GPUs a build has machine code for, by the rules of NVIDIA's "CUDA C++ Programming Guide"
// (binary compatibility, PTX compatibility, features of an architecture or a family alone).
#include "backends/cuda/plugin/machine_code.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cputrain::cuda {
namespace {

struct Gpu {
  const char* name;
  int major, minor;
};
constexpr Gpu kA100{"A100", 8, 0}, kRtx30{"RTX 30", 8, 6}, kL4{"L4", 8, 9}, kH100{"H100", 9, 0},
    kB200{"B200", 10, 0}, kB300{"B300", 10, 3}, kRtx50{"RTX 50", 12, 0}, kSpark{"Spark", 12, 1};
const std::vector<Gpu> kAll{kA100, kRtx30, kL4, kH100, kB200, kB300, kRtx50, kSpark};

/// The GPUs for which the driver compiles.
std::string compiled_there(const std::string& architectures) {
  std::string names;
  for (const Gpu& gpu : kAll) {
    if (driver_compiles(architectures, gpu.major, gpu.minor)) {
      names += (names.empty() ? "" : ", ") + std::string(gpu.name);
    }
  }
  return names;
}

TEST(MachineCode, RunsOnLaterGpusOfOneMajorNumber) {
  EXPECT_EQ(compiled_there("80-real 90a-real 90-virtual"), "B200, B300, RTX 50, Spark");
  EXPECT_EQ(compiled_there("80"), "H100, B200, B300, RTX 50, Spark");
  EXPECT_EQ(compiled_there("80-virtual 86-real"), "A100, H100, B200, B300, RTX 50, Spark");
  EXPECT_EQ(compiled_there("80-real 90a-real 100-real 120-real 90-virtual"), "");
}

TEST(MachineCode, OfOneArchitectureOrFamilyRunsThereAlone) {
  EXPECT_EQ(compiled_there("80-virtual 100a-real"), "A100, RTX 30, L4, H100, B300, RTX 50, Spark");
  EXPECT_EQ(compiled_there("80-virtual 100f-real"), "A100, RTX 30, L4, H100, RTX 50, Spark");
}

/// Without PTX that suits it a GPU has no kernels at all, which is another matter.
TEST(MachineCode, ComesFromPtxOfNoLaterGpu) {
  EXPECT_EQ(compiled_there("90-virtual"), "H100, B200, B300, RTX 50, Spark");
  EXPECT_EQ(compiled_there("80-real 90a-real"), "");
  EXPECT_EQ(compiled_there("90a-virtual"), "");
}

TEST(MachineCode, IsThereWhereTheWordsSayNothing) {
  EXPECT_EQ(compiled_there("native"), "");
  EXPECT_EQ(compiled_there("all-major"), "");
  EXPECT_EQ(compiled_there(""), "");
}

}  // namespace
}  // namespace cputrain::cuda
