#include "backends/cuda/selftest/kernel_cases.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

/// Sizes and numbers are others for each seed. Checked kernels, too, and in other orders.
TEST(FirstBlockKernels, AreLoopsInDouble) {
  for (const std::uint64_t seed : {1, 2}) {
    for (const compute::CasePlan& plan : first_block_plans(Numbers::bf16, seed, test_stream())) {
      const compute::SelftestCase made = compute::run_case(plan);
      EXPECT_TRUE(made.passed()) << made.name << ": " << made.wrong;
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
