#include "checkpoint/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace cputrain::checkpoint {
namespace {

loop::Progress at(std::uint64_t steps, int epochs = 0) {
  loop::Progress progress;
  progress.steps = steps;
  progress.epochs = epochs;
  return progress;
}

/// A training whose steps take a second each and whose checkpoints cost the same each: the steps
/// that have one. An epoch has `epoch` steps; it is asked again when one ends.
std::vector<std::uint64_t> taken_at(Schedule& schedule, std::uint64_t from, std::uint64_t to,
                                    std::uint64_t epoch, double cost) {
  std::vector<std::uint64_t> steps;
  double thread = 0;
  for (std::uint64_t step = from + 1; step <= to; ++step) {
    const double now = static_cast<double>(step - from);
    const auto ask = [&](std::uint64_t epochs) {
      const auto place = at(step, static_cast<int>(epochs));
      if (!schedule.due(place, now)) return;
      steps.push_back(step);
      schedule.taken(place, now, cost / 4);
      schedule.written(thread += cost * 3 / 4);
    };
    ask((step - 1) / epoch);
    if (step % epoch == 0) ask(step / epoch);
  }
  return steps;
}

std::vector<std::uint64_t> every(std::uint64_t by, std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = from; step <= to; step += by) steps.push_back(step);
  return steps;
}

constexpr std::uint64_t kNever = 1'000'000'000;

TEST(Schedule, StepsAreKeptToTheLetterWhateverTheyCost) {
  Schedule schedule({.steps = 5}, at(0), std::size_t{1} << 40);
  EXPECT_EQ(taken_at(schedule, 0, 50, kNever, 1000), every(5, 5, 50));
}

TEST(Schedule, AResumeKeepsTheSameSteps) {
  Schedule schedule({.steps = 5}, at(12), 0);
  EXPECT_EQ(taken_at(schedule, 12, 50, kNever, 1), every(5, 15, 50));
  Schedule on_a_mark({.steps = 5}, at(10), 0);
  EXPECT_EQ(taken_at(on_a_mark, 10, 50, kNever, 1), every(5, 15, 50));
}

TEST(Schedule, OfNothingIsNever) {
  Schedule schedule({}, at(0), 0);
  EXPECT_TRUE(taken_at(schedule, 0, 1000, 10, 0).empty());
}

TEST(Schedule, CheapOnesComeAtEveryMark) {
  Schedule seconds({.seconds = 7}, at(0), 0);
  EXPECT_EQ(taken_at(seconds, 0, 100, kNever, 0.001), every(7, 7, 100));
  Schedule epochs({.epochs = 2}, at(0), 0);
  EXPECT_EQ(taken_at(epochs, 0, 100, 10, 0.001), every(20, 20, 100));
}

// The first is guessed to cost a second (half a gigabyte), and costs two: 1 % of 100 s, then of
// (2 + 2) / 1 % = 400 s, 600 s, ...
TEST(Schedule, MarksOfSecondsWaitForOnePercent) {
  Schedule schedule({.seconds = 10}, at(0), 500'000'000);
  EXPECT_EQ(taken_at(schedule, 0, 1000, kNever, 2),
            (std::vector<std::uint64_t>{100, 400, 600, 800, 1000}));
}

// As above, but an epoch that was due and could not be is made up for as soon as it can.
TEST(Schedule, MarksOfEpochsWaitForOnePercent) {
  Schedule schedule({.epochs = 1}, at(0), 500'000'000);
  EXPECT_EQ(taken_at(schedule, 0, 1000, 70, 2),
            (std::vector<std::uint64_t>{100, 400, 600, 800, 1000}));
  Schedule seldom({.epochs = 1}, at(0), 500'000'000);
  EXPECT_EQ(taken_at(seldom, 0, 2000, 500, 2), every(500, 500, 2000));
}

// At most 1 % of the time, whatever the cost.
TEST(Schedule, CostsNoMoreThanOnePercent) {
  for (const double cost : {0.01, 0.3, 1., 5.}) {
    Schedule schedule({.seconds = 1, .epochs = 1}, at(0), 1000);
    const auto steps = taken_at(schedule, 0, 3000, 100, cost);
    const double without_the_first = cost * static_cast<double>(steps.size() - 1);
    EXPECT_LE(without_the_first, 30) << cost;
    EXPECT_GE(cost * static_cast<double>(steps.size()), 30 - 2 * cost) << cost;
  }
}

// An epoch of 12 steps; cheap: the step that ends one has both, the second in its place.
TEST(Schedule, StepsAndEpochsTogether) {
  Schedule cheap({.steps = 5, .epochs = 1}, at(0), 0);
  EXPECT_EQ(taken_at(cheap, 0, 60, 12, 0.0001),
            (std::vector<std::uint64_t>{5, 10, 12, 15, 20, 24, 25, 30, 35, 36, 40, 45, 48, 50, 55,
                                        60, 60}));
  Schedule dear({.steps = 5, .epochs = 1}, at(0), 0);
  EXPECT_EQ(taken_at(dear, 0, 60, 12, 10), every(5, 5, 60));
}

// What the thread has taken is known late: until then it is taken for what one took before.
TEST(Schedule, CountsWhatIsBeingWritten) {
  Schedule schedule({.seconds = 1}, at(0), 500'000'000);
  EXPECT_FALSE(schedule.due(at(99), 99));
  EXPECT_TRUE(schedule.due(at(100), 100));
  schedule.taken(at(100), 100, 0.1);
  EXPECT_FALSE(schedule.due(at(199), 199));
  EXPECT_TRUE(schedule.due(at(200), 200));
  schedule.written(0.4);
  EXPECT_FALSE(schedule.due(at(200), 100.5));  // 0.5 + 0.5 of 100.5
  EXPECT_TRUE(schedule.due(at(200), 101));
}

}  // namespace
}  // namespace cputrain::checkpoint
