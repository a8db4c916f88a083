// The scheme that skips zeros against loops in double.
#include "backends/cpu/sparse/sparse_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/backends/cpu/each_instruction_set.h"
#include "tests/backends/cpu/exact_convolution.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::sparse_convolution_test {
namespace {

class SkippingUnderTest {
 public:
  SkippingUnderTest(const ExactShape& s, int threads, const sparse::Kernels& kernels)
      : tested_({s.src, s.wide, s.dst, s.rows, s.columns, s.pool, s.relu}, threads, kernels),
        scratch_(std::max(tested_.scatter_bytes(), tested_.gather_bytes())),
        turned_(s.src.blocks() * s.wide.blocks() * 9 *
                static_cast<std::size_t>(kernels.block * kernels.block)) {}

  void forward(int images, const float* src, const float* weights, const float* bias, float* dst,
               std::uint8_t* winners) {
    tested_.forward(images, src, weights, bias, dst, winners, scratch_.data());
  }
  void backward_data(int images, const ExactOutputs& o, const float* weights, float* diff_src,
                     bool adds) {
    tested_.turn_kernel(weights, turned_.data());
    tested_.backward_data(images, {o.diff, o.dst, o.winners}, turned_.data(), diff_src, adds,
                          scratch_.data());
  }
  void backward_weights(int images, const float* src, const ExactOutputs& o, float* diff_weights,
                        float* diff_bias, bool adds) {
    tested_.backward_weights(images, src, {o.diff, o.dst, o.winners}, diff_weights, diff_bias, adds,
                             scratch_.data());
  }

 private:
  SparseConvolution tested_;
  std::vector<std::byte> scratch_;
  std::vector<float> turned_;
};

class SparseConvolutionTest : public EachInstructionSet {
 protected:
  static void check(const ExactCase& c) {
    const Team team(c.threads);
    const sparse::Kernels& kernels = sparse::kernels_for(GetParam());
    ExactConvolution<SkippingUnderTest> problem(c, kernels.block, kernels);
    problem.check_all();
  }
};

TEST_P(SparseConvolutionTest, CommonCases) {
  for (const ExactCase& c : common_cases()) check(c);
}

TEST_P(SparseConvolutionTest, ManyChannelsGoInChunks) {
  check({8, 9, 9, 2, {0, 0}, {0, 0}, true, true, 0.3, 1, 1});
  check({7, 6, 3, 17, {1, 1}, {1, 1}, true, true, 0.3, 1, 1});
}

TEST_P(SparseConvolutionTest, NothingAndEverythingAlive) {
  for (const double density : {0.0, 1.0}) {
    check({10, 12, 2, 2, {0, 0}, {0, 0}, true, true, density, 2, 1});
    check({6, 7, 1, 1, {1, 1}, {1, 1}, false, true, density, 1, 1});
  }
}

/// Some chunks have several rows of tiles, or begin in one image and end in the next.
TEST_P(SparseConvolutionTest, ThreadsTakeRowsAcrossImages) {
  check({36, 6, 1, 3, {1, 1}, {1, 1}, true, true, 0.4, 11, 2});
  check({36, 6, 1, 3, {1, 1}, {1, 1}, true, true, 0.4, 11, 4});
  check({36, 6, 2, 17, {1, 1}, {1, 1}, true, true, 0.4, 3, 2});
}

/// Blocks of outputs go in groups instead of many chunks: the second kernel is large in blocks of
/// 8, too.
TEST_P(SparseConvolutionTest, ThreadsShareLargeKernels) {
  check({10, 6, 8, 17, {1, 1}, {1, 1}, true, true, 0.4, 3, 2});
  check({10, 6, 16, 33, {1, 1}, {1, 1}, true, true, 0.4, 3, 2});
}

INSTANTIATE_TEST_SUITE_P(AllSets, SparseConvolutionTest, all_instruction_sets(), name_of_set);

}  // namespace
}  // namespace cputrain::cpu::sparse_convolution_test
