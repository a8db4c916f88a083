#include "scaling/sweep/sweep_work.h"

#include <gtest/gtest.h>

namespace cputrain::sweep {
namespace {

TEST(TimeLeftTest, IsInProportionToWhatWasSpent) {
  TimeLeft left;
  left.expect(100);
  left.expect(20);
  EXPECT_EQ(left.text(), "");  // nothing is known yet
  left.spent(30, 10, 10);
  EXPECT_EQ(left.text(), "5:30");  // 110 at 3 s
  left.spent(30, 10, 90);          // it failed: its repeats are not tried
  EXPECT_EQ(left.text(), "60s");
  left.spent(60, 20, 20);
  EXPECT_EQ(left.text(), "");
}

}  // namespace
}  // namespace cputrain::sweep
