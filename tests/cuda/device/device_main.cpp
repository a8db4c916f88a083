// main() of tests on the GPU of this machine: 77 where there is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

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
  const int code = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    fmt::print(stderr, "no case matches the filter {} (nothing was tested); name others\n",
               GTEST_FLAG_GET(filter));
    return EXIT_FAILURE;
  }
  return code;
}
