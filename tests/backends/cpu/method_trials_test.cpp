#include "backends/cpu/convolution/method_trials.h"

#include <gtest/gtest.h>

namespace cputrain::cpu::method_trials_test {
namespace {

using enum ConvolutionMethod;

TEST(MethodTrials, TakeTheLeastOfAllRoundsForEachDirection) {
  const ConvolutionMethod order[] = {direct, winograd, sparse};
  MethodTrials trials({direct, winograd, sparse});
  // In the first round direct is disturbed.
  const MethodTimes disturbed[] = {{90, 90, 90, 1}, {5, 7, 3, 1}, {6, 2, 8, 0}};
  const MethodTimes quiet[] = {{4, 6, 9, 1}, {5, 7, 3, 1}, {6, 2, 8, 0}};
  for (int number = 0; number < MethodTrials::kRounds; ++number) {
    const auto& round = number == 0 ? disturbed : quiet;
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(trials.running());
      EXPECT_EQ(trials.candidate(), order[i]);
      trials.note(round[i]);
    }
  }
  EXPECT_FALSE(trials.running());
  // forward: 4, 5, 6. Back: sparse + winograd with unpooling is 2 + 3 + 1, sparse alone 2 + 8.
  EXPECT_EQ(trials.best()[Direction::forward], direct);
  EXPECT_EQ(trials.best()[Direction::backward_weights], sparse);
  EXPECT_EQ(trials.best()[Direction::backward_data], winograd);
}

TEST(MethodTrials, UnpoolingIsPaidOnceForBothWaysBack) {
  MethodTrials trials({direct, sparse});
  for (int round = 0; round < MethodTrials::kRounds; ++round) {
    trials.note({1, 4, 4, 3});
    trials.note({1, 5, 5, 0});
  }
  // 4 + 4 + 3 = 11; one way by the library: 4 + 5 + 3 = 12; neither: 10
  EXPECT_EQ(trials.best()[Direction::backward_weights], sparse);
  EXPECT_EQ(trials.best()[Direction::backward_data], sparse);
  trials.restart();
  for (int round = 0; round < MethodTrials::kRounds; ++round) {
    trials.note({1, 4, 4, 3});
    trials.note({1, 6, 6, 0});
  }
  EXPECT_EQ(trials.best()[Direction::backward_weights], direct);  // 11 against 12
  EXPECT_EQ(trials.best()[Direction::backward_data], direct);
}

TEST(MethodTrials, MethodsAsText) {
  for (const auto forward : {direct, winograd, sparse, bf16, tiles}) {
    const ConvolutionMethods methods{{forward, sparse, direct}};
    EXPECT_EQ(methods_of(to_text(methods)), methods);
  }
  EXPECT_EQ(to_text({{direct, winograd, sparse}}), "dws");
  EXPECT_EQ(to_text({{bf16, direct, tiles}}), "bdt");
  for (const char* other : {"", "d", "dw", "dwsd", "dwx", "DWS", "d s"}) {
    EXPECT_FALSE(methods_of(other)) << other;
  }
}

}  // namespace
}  // namespace cputrain::cpu::method_trials_test
