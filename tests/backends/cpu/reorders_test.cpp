#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/kernels/instruction_set.h"

/// From AVX2 on, activations of floats keep their layout through the whole step. The witness is the
/// library itself: it prints each primitive that it runs as
/// "onednn_verbose,exec,cpu,kind,implementation,...,shape,ms".
namespace cputrain::cpu::reorders_test {
namespace {

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> list;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) list.push_back(field);
  return list;
}

/// Lines of the child's output between its marks.
std::vector<std::string> lines_of_steps() {
  std::FILE* pipe = popen("ONEDNN_VERBOSE=1 " CPUTRAIN_VERBOSE_STEPS, "r");
  std::vector<std::string> lines;
  std::array<char, 4096> buffer;
  bool inside = false;
  while (std::fgets(buffer.data(), buffer.size(), pipe)) {
    const std::string line(buffer.data());
    if (line.starts_with("steps ")) {
      inside = line.starts_with("steps begin");
    } else if (inside) {
      lines.push_back(line);
    }
  }
  EXPECT_EQ(pclose(pipe), 0);
  return lines;
}

/// Kernels of the networks in verbose_steps.cpp as the library writes shapes: out x in x h x w.
bool is_kernel(const std::string& shape) {
  static const std::vector<std::string> kernels{"32x3x3x3", "64x32x3x3", "128x64x3x3",
                                                "128x128x3x3", "32x64x3x3"};
  return std::find(kernels.begin(), kernels.end(), shape) != kernels.end();
}

TEST(CpuBackend, ReordersNoActivationInAStep) {
  if (!supports(InstructionSet::avx2)) {
    GTEST_SKIP() << "the library's ways back for this CPU read maps channels-last";
  }
  int convolutions = 0, pools = 0;
  for (const std::string& line : lines_of_steps()) {
    const auto f = fields(line);
    const auto exec = std::find(f.begin(), f.end(), "exec");
    if (exec == f.end() || f.end() - exec < 5) continue;
    const std::string& kind = exec[2];
    const std::string& shape = f[f.size() - 2];
    convolutions += kind == "convolution";
    pools += kind.starts_with("pooling");  // "pooling_v2" in some versions
    EXPECT_TRUE(kind != "reorder" || is_kernel(shape)) << line;
    // Plain loops of the library would be correct and a hundred times slower.
    EXPECT_FALSE(exec[3].starts_with("ref")) << line;
  }
  // Two steps of two micro-batches: 0 + 8 calls each, since behind pools our own kernels run; with
  // Winograd they also compute the second convolution in its three directions.
  EXPECT_EQ(convolutions, 2 * 2 * (8 + 5));
  // Max pools behind a convolution are our own; what is left is one global average.
  EXPECT_EQ(pools, 2 * 2 * 2 * 2);
}

}  // namespace
}  // namespace cputrain::cpu::reorders_test
