// main() of tests on the GPU of this machine: 77 where there is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cuda/device/device.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  GTEST_FLAG_SET(filter, CPUTRAIN_DEVICE_CASES);
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string why = cputrain::cuda::why_no_device(); !why.empty()) {
    fmt::print("skipped: {}\n", why);
    return kSkipped;
  }
  const cputrain::cuda::DeviceProperties device = cputrain::cuda::device_properties(0);
  fmt::print("{}, {}\n", device.name, device.runtime);
  return RUN_ALL_TESTS();
}
