#include "loop/replicas.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/threads/threads_communicator.h"
#include "tests/support/locked_backend.h"

namespace cputrain::loop {
namespace {

/// Two elements that are learnt, a gap, two moving statistics, one frozen parameter.
compute::ParameterLayout layout() {
  compute::ParameterLayout layout;
  layout.dtype = DType::f64;
  layout.gradient_size = 8;
  layout.arena_size = 24;
  layout.parameters = {{"kernel", {2}, 2, {0, 2}, true, true, false, 0, 1},
                       {"moving_mean", {2}, 2, {8, 10}, false, false, true, 0, 1},
                       {"frozen", {1}, 1, {16, 17}, false, false, false, 0, 1}};
  return layout;
}

/// In the host's memory or another.
void expect_weighed_by_images(compute::Memory& memory, comm::Communicator& communicator) {
  constexpr double kImages[] = {5, 0, 3};
  const int rank = communicator.rank();
  const compute::OwnedArray array(memory, 24, DType::f64);
  std::vector<double> weights(24, 7.0 + rank);
  weights[8] = 10.0 * rank;  // 0, 10, 20
  weights[9] = 1.0 / 3;
  compute::write_numbers(memory, weights, array.array());
  std::mutex mutex;
  EXPECT_TRUE(
      average_statistics({layout(), array.array(), memory}, kImages[rank], communicator, mutex));
  weights = compute::read_numbers(memory, array.array());
  EXPECT_DOUBLE_EQ(weights[8], (5 * 0.0 + 0 * 10.0 + 3 * 20.0) / 8);
  EXPECT_NEAR(weights[9], 1.0 / 3, 1e-16);
  EXPECT_EQ(weights[0], 7.0 + rank);   // learnt
  EXPECT_EQ(weights[16], 7.0 + rank);  // frozen
}

TEST(AverageStatistics, WeighsRanksByTheirImages) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    testing::LockedMemory locked;
    expect_weighed_by_images(compute::host_memory(), communicator);
    expect_weighed_by_images(locked, communicator);
  });
}

TEST(AverageStatistics, WithoutImagesNothingChanges) {
  threads::run_ranks(2, [&](comm::Communicator& communicator) {
    std::vector<double> weights(24, 1.0 + communicator.rank());
    std::mutex mutex;
    EXPECT_FALSE(average_statistics({layout(), Array::of<double>(weights), compute::host_memory()},
                                    0, communicator, mutex));
    EXPECT_EQ(weights[8], 1.0 + communicator.rank());
  });
}

}  // namespace
}  // namespace cputrain::loop
