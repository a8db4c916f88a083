#include "backends/cuda/device/shared_memory_grants.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cputrain::cuda {
namespace {

class Grants : public ::testing::Test {
 protected:
  /// How often the runtime was asked.
  int asked(int device, const void* kernel, std::size_t bytes) {
    grants_.ask_once(device, kernel, bytes, [this] { ++asked_; });
    return asked_;
  }

  SharedMemoryGrants grants_;
  std::atomic<int> asked_ = 0;
  const int first_ = 0, second_ = 0;  ///< stand for kernels
};

TEST_F(Grants, AreAskedForOncePerKernelAndDevice) {
  EXPECT_EQ(asked(0, &first_, 61440), 1);
  EXPECT_EQ(asked(0, &first_, 61440), 1);
  EXPECT_EQ(asked(0, &second_, 61440), 2);
  EXPECT_EQ(asked(1, &first_, 61440), 3);
  EXPECT_EQ(asked(1, &first_, 61440), 3);
  EXPECT_EQ(asked(0, &second_, 61440), 3);
}

TEST_F(Grants, HoldForLessAndNotForMore) {
  EXPECT_EQ(asked(0, &first_, 50000), 1);
  EXPECT_EQ(asked(0, &first_, 40000), 1);
  EXPECT_EQ(asked(0, &first_, 60000), 2);
  EXPECT_EQ(asked(0, &first_, 60000), 2);
}

TEST_F(Grants, ThatWereRefusedAreAskedForAgain) {
  const auto refused = [] { throw std::runtime_error("refused"); };
  EXPECT_THROW(grants_.ask_once(0, &first_, 60000, refused), std::runtime_error);
  EXPECT_EQ(asked(0, &first_, 60000), 1);
}

TEST_F(Grants, AreSharedByThreads) {
  std::vector<std::thread> threads;
  for (int device = 0; device < 4; ++device) {
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([this, device] {
        for (int launch = 0; launch < 1000; ++launch) asked(device, &first_, 60000);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(asked_, 4);
}

}  // namespace
}  // namespace cputrain::cuda
