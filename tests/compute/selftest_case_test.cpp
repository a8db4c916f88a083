#include "compute/selftest_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace cputrain::compute {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RunOutputs outputs(const std::vector<double>& a, const std::vector<double>& b) {
  RunOutputs made;
  made.add("a", a);
  made.add("b", b);
  return made;
}

SelftestCase run_of(const RunOutputs& first, const RunOutputs& second, const RunOutputs& expected,
                    double limit = 1e-3) {
  return run_case({"case", limit, [&](int run) { return run == 0 ? first : second; },
                   [&] { return expected; }});
}

TEST(RelativeDistance, IsThatOfEuclid) {
  const std::vector<double> none, zeros{0, 0}, a{3, 4}, b{3, 4.5}, nan{3, kNan};
  EXPECT_EQ(relative_distance(a, a), 0);
  EXPECT_DOUBLE_EQ(relative_distance(b, a), 0.1);
  EXPECT_EQ(relative_distance(zeros, zeros), 0);
  EXPECT_EQ(relative_distance(none, none), 0);
  EXPECT_EQ(relative_distance(a, zeros), HUGE_VAL);
  EXPECT_EQ(relative_distance(none, a), HUGE_VAL);
  EXPECT_TRUE(std::isnan(relative_distance(nan, a)));
}

TEST(RunCase, HasTheWorstOutputsError) {
  const RunOutputs found = outputs({1, 1}, {10.001, 0}), expected = outputs({1, 1.0001}, {10, 0});
  const SelftestCase result = run_of(found, found, expected);
  EXPECT_TRUE(result.passed()) << result.wrong;
  EXPECT_NEAR(result.error, 1e-4, 1e-9);
  EXPECT_EQ(result.limit, 1e-3);
  EXPECT_TRUE(result.repeats);
}

TEST(RunCase, NamesTheElementThatIsFurthestOff) {
  const RunOutputs found = outputs({1, 2, 3.5}, {4}), expected = outputs({1, 2.25, 3}, {4});
  const SelftestCase result = run_of(found, found, expected);
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.wrong, "a[2] is 3.5 instead of 3");
}

TEST(RunCase, HasNoNanPass) {
  const RunOutputs found = outputs({5, 1}, {kNan}), expected = outputs({1, 1}, {4});
  const SelftestCase result = run_of(found, found, expected, 1e9);
  EXPECT_FALSE(result.passed());
  EXPECT_TRUE(std::isnan(result.error));
  EXPECT_EQ(result.wrong, "b[0] is nan instead of 4");
}

TEST(RunCase, MissesNumbersAndOutputs) {
  RunOutputs one;
  one.add("a", std::vector<double>{1});
  const RunOutputs both = outputs({1}, {2});
  EXPECT_EQ(run_of(one, one, both).wrong, "1 outputs instead of 2");
  const RunOutputs shorter = outputs({1}, {});
  EXPECT_EQ(run_of(shorter, shorter, both).wrong, "b has 0 numbers instead of 1");
}

TEST(RunCase, WantsTheSameBitsASecondTime) {
  const RunOutputs first = outputs({1}, {0.0}), second = outputs({1}, {-0.0});
  const SelftestCase result = run_of(first, second, first);
  EXPECT_FALSE(result.repeats);
  EXPECT_EQ(result.error, 0);
  EXPECT_EQ(result.wrong, "a second run gave other bits");
  EXPECT_NE(result.hash, run_of(second, second, first).hash);
  EXPECT_EQ(result.hash, run_of(first, first, second).hash);
}

TEST(RunCase, FailsWhereARunSaysSo) {
  RunOutputs found = outputs({1}, {2});
  const RunOutputs expected = found;
  found.note("something was written behind the end of a");
  found.note("and more");
  for (const auto& [first, second] : {std::pair{found, expected}, std::pair{expected, found}}) {
    const SelftestCase result = run_of(first, second, expected);
    EXPECT_EQ(result.wrong, "something was written behind the end of a");
    EXPECT_EQ(result.error, 0);
  }
}

TEST(RunCase, TurnsAnErrorIntoAFailedCase) {
  const SelftestCase result =
      run_case({"case", 1, [](int) -> RunOutputs { fail(ExitCode::internal, "no such memory"); },
                [] { return RunOutputs{}; }});
  EXPECT_EQ(result.wrong, "no such memory");
  EXPECT_EQ(result.error, HUGE_VAL);
}

}  // namespace
}  // namespace cputrain::compute
