// Whether a training that came to its end is the one that is asked for now, or goes on.
#include "training/asked_end.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "training/run/same_training.h"

namespace cputrain::training {
namespace {

using loop::Progress;
using loop::TrainingEnd;

/// Ten epochs of five steps, unless a test says otherwise.
TrainingEnd epochs(int count) { return {.epochs = count, .steps = {}}; }
TrainingEnd steps(std::uint64_t count) { return {.epochs = 1, .steps = count}; }
TrainingEnd target(double accuracy) {
  TrainingEnd end = epochs(10);
  end.target_accuracy = accuracy;
  return end;
}
TrainingEnd patience(int count, double min_delta = 0, int most = 10) {
  TrainingEnd end = epochs(most);
  end.patience = count;
  end.min_delta = min_delta;
  return end;
}

/// Whole epochs, and steps of one that has begun.
Progress at(int whole, std::size_t begun = 0) {
  Progress progress;
  progress.epochs = whole;
  progress.steps = 5 * static_cast<std::uint64_t>(whole) + begun;
  if (begun > 0) progress.begun.emplace().steps = begun;
  return progress;
}
Progress reached(double accuracy) {
  Progress progress = at(4);
  progress.reached = {.target = 0.5, .accuracy = accuracy};
  return progress;
}
Progress waited(int count) {
  Progress progress = at(7);
  progress.patience.waited = count;
  return progress;
}

enum class Becomes { the_same, another, longer };

struct Case {
  const char* what;
  TrainingEnd then, now;
  Progress progress;
  Becomes becomes;
  optim::Schedule schedule = optim::ConstantRate{};
};

TEST(TrainingEnd, OfAFinishedRun) {
  using enum Becomes;
  const optim::Schedule cosine = optim::CosineDecay{};
  const std::vector<Case> cases{
      {"the same epochs", epochs(10), epochs(10), at(10), the_same},
      {"more epochs", epochs(10), epochs(20), at(10), longer},
      {"fewer epochs", epochs(10), epochs(9), at(10), another},
      {"the same steps", steps(7), steps(7), at(1, 2), the_same},
      {"more steps", steps(7), steps(8), at(1, 2), longer},
      {"fewer steps", steps(7), steps(6), at(1, 2), another},
      {"steps that are all of the epochs", epochs(10), steps(50), at(10), the_same},
      {"epochs that are all of the steps", steps(10), epochs(2), at(2), the_same},
      {"epochs that the steps go beyond", steps(7), epochs(1), at(1, 2), another},
      {"epochs that end later than the steps", steps(7), epochs(2), at(1, 2), longer},
      {"steps under a schedule that ends with them", epochs(10), steps(50), at(10), another,
       cosine},
      {"more epochs under such a schedule", epochs(10), epochs(20), at(10), longer, cosine},
      {"a target where none was", epochs(10), target(0.1), at(10), another},
      {"a lower target", target(0.5), target(0.4), reached(0.6), another},
      {"a higher target, reached", target(0.5), target(0.6), reached(0.6), the_same},
      {"a higher target, not reached", target(0.5), target(0.7), reached(0.6), longer},
      {"no target any more", target(0.5), epochs(10), reached(0.6), longer},
      {"a higher target after the last epoch", target(0.5), target(0.7), at(10), the_same},
      {"patience where none was", epochs(10), patience(5), at(10), another},
      {"the same patience", patience(3), patience(3), waited(3), the_same},
      {"less patience", patience(3), patience(2), waited(3), another},
      {"more patience", patience(3), patience(4), waited(3), longer},
      {"no patience any more", patience(3), epochs(10), waited(3), longer},
      {"another least change", patience(3), patience(3, 0.1), waited(3), another},
      {"more epochs than were waited for", patience(3), patience(3, 0, 20), waited(3), the_same},
      {"the same where the rate goes to the end", patience(3), patience(3, 0, 20), waited(3),
       another, cosine},
      {"fewer epochs than were made", patience(3), patience(3, 0, 6), waited(3), another},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(loop::is_over(c.now, c.progress), c.becomes != longer);
    if (c.becomes == longer) continue;
    EXPECT_EQ(end_differences({{c.then}, {c.now}, c.progress, c.schedule}).empty(),
              c.becomes == the_same);
  }
}

TEST(TrainingEnd, DifferencesNameTheFlagAndBothValues) {
  const auto rows = end_differences({{patience(3)}, {patience(2, 0.5, 6)}, waited(3), {}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(to_text(rows[0], Compared::finished_run), "epochs: 10 in the run, 6 here");
  EXPECT_EQ(to_text(rows[1], Compared::finished_run), "early-stopping: 3 in the run, 2:0.5 here");
}

TEST(TrainingEnd, LessThanIsMade) {
  EXPECT_FALSE(asks_for_less(epochs(3), at(3)));
  EXPECT_TRUE(asks_for_less(epochs(3), at(3, 1)));
  EXPECT_TRUE(asks_for_less(epochs(3), at(4)));
  EXPECT_FALSE(asks_for_less(steps(16), at(3, 1)));
  EXPECT_TRUE(asks_for_less(steps(15), at(3, 1)));
  TrainingEnd settled = steps(5);
  settled.settled_steps = 20;  // may make more steps than it says
  EXPECT_FALSE(asks_for_less(settled, at(3)));
}

TEST(TrainingEnd, IsReadAsItIsWritten) {
  TrainingEnd all = patience(3, 0.25, 7);
  all.steps = 40;
  all.settled_steps = 6;
  all.target_accuracy = 0.75;
  TrainingEnd by_accuracy = patience(2);
  by_accuracy.monitor = optim::Monitor::accuracy;
  EXPECT_FALSE(to_json(all).contains(kMonitor));
  for (const TrainingEnd& end : {epochs(4), steps(9), target(0.5), patience(2), all, by_accuracy}) {
    const TrainingEnd read = end_of_json(to_json(end));
    EXPECT_EQ(to_json(read), to_json(end));
    EXPECT_EQ(read.epochs, end.epochs);
    EXPECT_EQ(read.steps, end.steps);
    EXPECT_EQ(read.settled_steps, end.settled_steps);
    EXPECT_EQ(read.target_accuracy, end.target_accuracy);
    EXPECT_EQ(read.patience, end.patience);
    EXPECT_EQ(read.min_delta, end.min_delta);
    EXPECT_EQ(read.monitor, end.monitor);
  }
  for (const char* text :
       {"null", "3", "{}", R"({"epochs": "ten"})", R"({"epochs": 1, "steps": []})",
        R"({"epochs": 1e300})", R"({"epochs": -1})", R"({"epochs": 5000000000})",
        R"({"epochs": 1, "early-stopping": 0.5})", R"({"epochs": 1, "monitor": "f1"})"}) {
    EXPECT_THROW(end_of_json(nlohmann::ordered_json::parse(text)), Error) << text;
    EXPECT_THROW(ending_of(nlohmann::ordered_json::parse(text)), Error) << text;
  }
}

}  // namespace
}  // namespace cputrain::training
