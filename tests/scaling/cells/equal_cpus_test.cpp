#include "scaling/cells/device_rates.h"
#include "training/request/flag_grammars.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace cputrain::cells {
namespace {

using End = CpuCount::Place;

/// Times of seconds * n^-power on 1, 2, 4 and 8 CPUs.
std::vector<double> law(double seconds, double power) {
  std::vector<double> times;
  for (const double n : {1, 2, 4, 8}) times.push_back(seconds * std::pow(n, -power));
  return times;
}

const std::vector<double> kFourCpus{1, 2, 4, 8};

Cell timed(int cpus, std::vector<double> repeats, const std::string& backend = "cpu") {
  Cell c;
  c.backend = backend;
  c.cpus = c.ranks = cpus;
  c.gpus = training::is_device(backend) ? cpus : 0;
  c.status = CellStatus::scaled;
  c.repeats = std::move(repeats);
  c.spread = Interval{std::ranges::min(c.repeats), std::ranges::max(c.repeats)};
  c.seconds_per_epoch = c.repeats[c.repeats.size() / 2];
  return c;
}

// Amdahl's ideal: n CPUs take 100 / n, so 100 / 3 are those of three; a square root needs the
// square.
TEST(EqualCpusTest, ARowThatIsAPowerLawIsItsOwnInverse) {
  for (const double n : {1.0, 1.5, 3.0, 4.0, 7.9, 8.0}) {
    for (const double power : {1.0, 0.5, 0.9}) {
      const CpuCount found = cpus_for(kFourCpus, law(100, power), 100 * std::pow(n, -power));
      EXPECT_EQ(found.place, End::within);
      EXPECT_NEAR(found.cpus, n, 1e-9) << power;
    }
  }
}

TEST(EqualCpusTest, BeyondTheEndsNothingIsComputed) {
  const CpuCount more = cpus_for(kFourCpus, law(100, 1), 12.4);
  EXPECT_EQ(more.place, End::more);
  EXPECT_EQ(more.cpus, 8);
  const CpuCount fewer = cpus_for({2, 4}, {50, 25}, 51);
  EXPECT_EQ(fewer.place, End::fewer);
  EXPECT_EQ(fewer.cpus, 2);
  EXPECT_EQ(cpus_for({2}, {50}, 50).place, End::within);
  EXPECT_EQ(cpus_for({2}, {50}, 49).place, End::more);
}

// 100 s on one CPU and 20 s on 8 that fall by a square root from 4 on: 2 s are 50 perfect ones, or
// 8 times the square of 10.
TEST(EqualCpusTest, BeyondTheRowTwoLawsAreABracket) {
  std::vector<Cell> cells{timed(1, {100}), timed(2, {20 * 2}), timed(8, {20})};
  const std::vector<const Cell*> row{&cells[0], &cells[1], &cells[2]};
  const EqualCpus equal = equal_cpus(timed(1, {2}, "cuda"), row);
  EXPECT_EQ(equal.cpus.place, End::more);
  EXPECT_NEAR(equal.perfect, 50, 1e-9);
  EXPECT_NEAR(equal.continued, 8 * 100, 1e-6);  // 2 to 8 CPUs halve it
  EXPECT_EQ(equal_cpus(timed(1, {30}, "cuda"), row).perfect, 0);
  cells[2] = timed(8, {41});  // slower than two
  EXPECT_EQ(equal_cpus(timed(1, {2}, "cuda"), row).continued, 0);
  EXPECT_EQ(equal_cpus(timed(1, {2}, "cuda"), {&cells[0]}).continued, 0);
}

// 4 CPUs are slower than 2, and 8 quicker than both: the first place counts.
TEST(EqualCpusTest, TheFewestCpusThatAreAsQuickCount) {
  const std::vector<double> times{100, 40, 60, 30};
  EXPECT_DOUBLE_EQ(cpus_for(kFourCpus, times, 40).cpus, 2);
  EXPECT_NEAR(cpus_for(kFourCpus, times, 100 / std::pow(2.5, 0.5)).cpus, std::sqrt(2), 1e-12);
  EXPECT_NEAR(cpus_for(kFourCpus, times, 35).cpus, 4 * 60. / 35, 1e-12);
}

// CPUs take 100 / n, of which repeats are a tenth away; the GPU takes 20 to 30.
TEST(EqualCpusTest, TheRangeSetsSlowestBesideQuickest) {
  std::vector<Cell> cells;
  for (const int n : {1, 2, 4, 8}) cells.push_back(timed(n, {90. / n, 100. / n, 110. / n}));
  std::vector<const Cell*> row;
  for (const Cell& c : cells) row.push_back(&c);
  const EqualCpus equal = equal_cpus(timed(1, {20, 25, 30}, "cuda"), row);
  EXPECT_NEAR(equal.cpus.cpus, 4, 1e-12);
  EXPECT_NEAR(equal.least.cpus, 3, 1e-12);
  EXPECT_NEAR(equal.most.cpus, 5.5, 1e-12);
  EXPECT_TRUE(equal.repeated);
  EXPECT_EQ(equal.status, CellStatus::scaled);

  cells[1].repeats.resize(1);
  cells[2].status = CellStatus::simulated;
  const EqualCpus once = equal_cpus(timed(1, {20, 25, 30}, "cuda"), row);
  EXPECT_FALSE(once.repeated);
  EXPECT_EQ(once.status, CellStatus::simulated);
  EXPECT_FALSE(equal_cpus(timed(1, {25}, "cuda"), {&cells[0]}).repeated);
}

TEST(EqualCpusTest, TheRangeHoldsTheMedian) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> seconds(1, 100), away(0, 5);
  const auto repeats = [&] {
    const double least = seconds(generator), middle = least + away(generator);
    return std::vector<double>{least, middle, middle + away(generator)};
  };
  for (int round = 0; round < 1000; ++round) {
    std::vector<Cell> cells;
    for (const int n : {1, 2, 4, 8, 96}) cells.push_back(timed(n, repeats()));
    std::vector<const Cell*> row;
    for (const Cell& c : cells) row.push_back(&c);
    const EqualCpus equal = equal_cpus(timed(1, repeats(), "cuda"), row);
    EXPECT_LE(equal.least.cpus, equal.cpus.cpus * (1 + 1e-12));
    EXPECT_LE(equal.cpus.cpus, equal.most.cpus * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace cputrain::cells
