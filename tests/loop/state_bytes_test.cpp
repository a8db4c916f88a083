#include <gtest/gtest.h>

#include "loop/optimizer.h"

namespace cputrain::loop {
namespace {

/// Every array of a rule's state is as long as the ranges that the rank owns.
TEST(StateBytes, OfTheOwnedRanges) {
  const std::vector<Range> owned{{0, 1000}, {2000, 2024}};
  EXPECT_EQ(state_bytes({.rule = optim::Adam{}}, owned, DType::f32), 2 * 4 * 1024u);
  EXPECT_EQ(state_bytes({.rule = optim::Sgd{}}, owned, DType::f32), 0u);
  EXPECT_EQ(state_bytes({.rule = optim::Sgd{}, .ema = 0.9}, owned, DType::f32), 4 * 1024u);
}

}  // namespace
}  // namespace cputrain::loop
