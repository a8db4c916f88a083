#include "scaling/cells/run_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/support/temporary_folder.h"

namespace cputrain::cells {
namespace {

constexpr const char* kBudget =
    R"("budget":{"input_wait":1,"forward":2,"backward":3,"allreduce_exposed":0.5,)"
    R"("straggler_wait":0.25,"optimizer":1,"other":0.25})";
constexpr const char* kSummary =
    R"({"type":"summary","outcome":"finished","loss":0.5,"accuracy":0.75,"val_loss":0.6,"val_accuracy":0.7,)"
    R"("time_to_accuracy":{"accuracy":0.7,"epoch":2,"seconds":33}})";

std::string step(int number, int images, double seconds, bool trying = false) {
  return fmt::format(R"({{"type":"step","step":{},"images":{},"seconds":{}{}}})", number, images,
                     seconds, trying ? R"(,"trying":true)" : "");
}

/// An epoch whose settled steps took 8 s, as the parts of the budget add up to.
std::string epoch(double seconds, int steps, int settled) {
  return fmt::format(R"({{"type":"epoch","epoch":#,"steps":{},"images":100,"seconds":{},{},)"
                     R"("settled":{{"steps":{},"seconds":8,{}}}}})",
                     steps, seconds, kBudget, settled, kBudget);
}

class RunFiguresTest : public ::testing::Test {
 protected:
  /// Epochs are numbered here.
  void write(const std::vector<std::string>& lines) const {
    std::ofstream file(folder_.path() / "metrics.jsonl");
    int epochs = 0;
    for (std::string line : lines) {
      const auto place = line.find('#');
      if (place != line.npos) line.replace(place, 1, std::to_string(++epochs));
      file << line << "\n";
    }
  }
  std::optional<RunFigures> scaled(int asked) const {
    return scaled_figures(folder_.path(), cell_, kEpoch, {2, asked, 100});
  }

  static constexpr EpochSize kEpoch{100};
  const testing::TemporaryFolder folder_;
  Cell cell_ = [] {
    Cell cell;
    cell.batch = 8;
    return cell;
  }();
};

TEST_F(RunFiguresTest, TakesTheLastWholeStepsThatTriedNothing) {
  write({step(1, 8, 9), step(2, 8, 7, true), step(3, 8, 5), step(4, 8, 2), step(5, 8, 4),
         step(6, 8, 3), step(7, 4, 1), epoch(40, 7, 5), kSummary});
  const auto figures = scaled(3);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->steps, 3);  // 2, 4, 3: not the short one, not the first ones
  EXPECT_DOUBLE_EQ(figures->step_seconds, 3);
  EXPECT_DOUBLE_EQ(*figures->seconds_per_epoch, 3 * 12.5);  // 100 images, 8 a step
  // An eighth of an epoch of 8 s was waiting for input.
  EXPECT_DOUBLE_EQ(figures->budget->input_wait, 37.5 / 8);
  EXPECT_NEAR(figures->budget->known() + figures->budget->other, 37.5, 1e-12);
  EXPECT_FALSE(figures->final_accuracy);  // after a few steps it says nothing
  EXPECT_FALSE(figures->includes_warm_up);
}

TEST_F(RunFiguresTest, StepsThatWereSkippedAndLinesOfOtherTypesAreNoFigures) {
  write({step(1, 8, 9), R"({"type":"resume","step":1,"epoch":1,"ranks":2})", step(2, 8, 2),
         R"({"type":"step","step":3,"images":8,"seconds":1,"loss":null,"skipped":true})",
         R"({"type":"something new","step":"7"})", step(4, 8, 4), epoch(16, 4, 2), kSummary});
  EXPECT_EQ(scaled(5)->steps, 2);
  EXPECT_DOUBLE_EQ(scaled(5)->step_seconds, 3);
}

TEST_F(RunFiguresTest, ALossThatIsNaNHasNoAccuracy) {
  const auto figures_of = [&](const std::string& summary) {
    write({step(1, 8, 9), step(2, 8, 2), epoch(16, 2, 1), summary});
    return measured_figures(folder_.path()).value();
  };
  const std::string reached = R"("time_to_accuracy":{"accuracy":0.9,"epoch":1,"seconds":3}})";
  const RunFigures nan = figures_of(
      R"({"type":"summary","outcome":"finished","loss":0.5,"accuracy":0.75,"val_loss":null,)"
      R"("nan":true,"val_accuracy":0.9,)" +
      reached);
  EXPECT_EQ(nan.final_accuracy, 0.75);
  EXPECT_FALSE(nan.val_accuracy);
  EXPECT_FALSE(nan.seconds_to_target);
  EXPECT_TRUE(nan.had_target);
  const RunFigures unknown = figures_of(
      R"({"type":"summary","outcome":"finished","loss":null,"accuracy":null,"val_loss":0.1,)"
      R"("val_accuracy":0.9,)" +
      reached);
  EXPECT_FALSE(unknown.final_accuracy);
  EXPECT_EQ(unknown.val_accuracy, 0.9);
  EXPECT_EQ(unknown.seconds_to_target, 3);
}

TEST_F(RunFiguresTest, TheMedianOfAnEvenNumberIsTheMiddle) {
  write({step(1, 8, 9), step(2, 8, 1), step(3, 8, 2), step(4, 8, 6), step(5, 8, 30),
         epoch(40, 5, 4), kSummary});
  EXPECT_DOUBLE_EQ(scaled(4)->step_seconds, 4);
  EXPECT_EQ(scaled(25)->steps, 4);  // there are no more
}

TEST_F(RunFiguresTest, StepsThatTriedSomethingNeverCount) {
  write({step(1, 8, 9, true), step(2, 8, 7, true), epoch(16, 2, 0), kSummary});
  EXPECT_FALSE(scaled(5));
  // Nor those of trials that began again in a later epoch.
  write({step(1, 8, 9, true), step(2, 8, 2), epoch(11, 2, 1), step(3, 8, 7, true),
         step(4, 8, 6, true), step(5, 8, 4), epoch(17, 3, 1), kSummary});
  EXPECT_EQ(scaled(5)->steps, 2);
  EXPECT_DOUBLE_EQ(scaled(5)->step_seconds, 3);
  EXPECT_FALSE(scaled(5)->includes_warm_up);
}

TEST_F(RunFiguresTest, CountsTheStepsOfATrainingThatNeverSettled) {
  const auto steps = [this] { return unsettled_steps(folder_.path(), cell_, kEpoch); };
  const std::vector<std::string> never{step(1, 8, 9, true), step(2, 8, 7, true), epoch(16, 2, 0),
                                       step(3, 8, 7, true), epoch(7, 1, 0)};
  auto whole = never;
  whole.emplace_back(kSummary);
  write(whole);
  EXPECT_EQ(steps(), 3);
  write(never);  // it was ended: nobody knows what would have come
  EXPECT_EQ(steps(), std::nullopt);
  write({step(1, 8, 9, true), step(2, 8, 7), epoch(16, 2, 1), kSummary});
  EXPECT_EQ(steps(), std::nullopt);
  write({"{}"});
  EXPECT_EQ(steps(), std::nullopt);
}

TEST_F(RunFiguresTest, ATrainingThatDidNotEndCountsAsNone) {
  const std::vector<std::string> lines{step(1, 8, 9), step(2, 8, 1), epoch(9, 2, 1)};
  auto whole = lines;
  whole.push_back("{\"type\":\"of another program\"}");
  whole.push_back(kSummary);
  write(whole);
  EXPECT_TRUE(scaled(1));  // the end is what the others lack
  write(lines);
  EXPECT_FALSE(scaled(1));
  for (const std::string& last :
       {std::string(kSummary).substr(0, 40), std::string("{}"), std::string("[1]"), std::string(),
        std::string(R"({"type":"summary","outcome":"interrupted"})"),
        std::string(R"({"type":"step","step":2,"images":8,"seconds":"1"})"),
        std::string("\xff\xfe\0", 3), std::string(100'000, '[')}) {
    auto all = lines;
    all.push_back(last);
    all.push_back(last == "" ? "" : kSummary);
    if (last.find("interrupted") != std::string::npos) all.pop_back();
    write(all);
    EXPECT_FALSE(scaled(1)) << last.substr(0, 50);
  }
  EXPECT_FALSE(scaled_figures(folder_.path() / "none", cell_, kEpoch, {2, 3, 100}));
  write({step(1, 8, 0), epoch(9, 1, 0), kSummary});
  EXPECT_FALSE(scaled(1));  // no time is no measurement
}

TEST_F(RunFiguresTest, OfSeveralEpochsTheFirstDoesNotCount) {
  write({epoch(100, 13, 12), epoch(10, 13, 12), epoch(16, 13, 12), kSummary});
  const auto figures = measured_figures(folder_.path());
  ASSERT_TRUE(figures);
  EXPECT_DOUBLE_EQ(*figures->seconds_per_epoch, 13);
  EXPECT_EQ(figures->steps, 13);
  EXPECT_EQ(figures->final_accuracy, 0.75);
  EXPECT_EQ(figures->val_accuracy, 0.7);
  EXPECT_TRUE(figures->had_target);
  EXPECT_EQ(figures->seconds_to_target, 33);
  EXPECT_FALSE(figures->includes_warm_up);
  write({epoch(100, 13, 12), kSummary});
  EXPECT_DOUBLE_EQ(*measured_figures(folder_.path())->seconds_per_epoch, 100);
  EXPECT_TRUE(measured_figures(folder_.path())->includes_warm_up);
}

TEST_F(RunFiguresTest, EpochsThatTriedAlgorithmsDoNotCountEither) {
  write({epoch(100, 13, 3), epoch(60, 13, 11), epoch(16, 13, 12), kSummary});
  EXPECT_DOUBLE_EQ(*measured_figures(folder_.path())->seconds_per_epoch, 16);
  EXPECT_FALSE(measured_figures(folder_.path())->includes_warm_up);
  write({epoch(100, 13, 3), epoch(60, 13, 11), kSummary});
  EXPECT_DOUBLE_EQ(*measured_figures(folder_.path())->seconds_per_epoch, 60);
  EXPECT_TRUE(measured_figures(folder_.path())->includes_warm_up);
}

TEST_F(RunFiguresTest, ReadsWhatTheHostTookAndHowLongThreadsWaited) {
  for (const auto& [key, part, other] :
       {std::tuple{"stolen", &RunFigures::stolen, &RunFigures::cpu_wait},
        std::tuple{"cpu_wait", &RunFigures::cpu_wait, &RunFigures::stolen}}) {
    SCOPED_TRACE(key);
    const auto that_lost = [&key = key](const char* text) {
      std::string line = epoch(100, 13, 12);
      return line.insert(line.size() - 1, fmt::format(R"(,"{}":{})", key, text));
    };
    const auto measured = [&, part = part] { return *measured_figures(folder_.path()).*part; };
    const std::string one = step(3, static_cast<int>(kEpoch.images_of_step(cell_.batch)), 2);
    write({one, that_lost("0.125"), kSummary});
    EXPECT_EQ(measured(), 0.125);
    EXPECT_EQ((*scaled(5)).*part, 0.125);
    EXPECT_FALSE((*scaled(5)).*other);
    // As of seconds, the median, and the first epoch does not count.
    write({that_lost("1"), that_lost("0.25"), that_lost("0"), that_lost("0.5"), kSummary});
    EXPECT_EQ(measured(), 0.25);
    for (const char* odd : {"null", "1.5", "-0.5"}) {
      write({one, that_lost(odd), kSummary});
      EXPECT_FALSE(measured()) << odd;
      EXPECT_FALSE((*scaled(5)).*part) << odd;
    }
    write({epoch(100, 13, 12), kSummary});  // of a version that did not ask
    EXPECT_FALSE(measured());
  }
}

TEST_F(RunFiguresTest, ReadsTheLimitsMeasuredBesideIt) {
  write({epoch(100, 13, 12), kSummary});
  std::ofstream(folder_.path() / "limits.json") << R"({"fma_gflops": 240.5, "triad_gbs": null})";
  const auto figures = measured_figures(folder_.path());
  EXPECT_EQ(figures->fma_gflops, 240.5);
  EXPECT_FALSE(figures->triad_gbs);
}

TEST_F(RunFiguresTest, WhatNoTableCanHoldIsNotKnown) {
  const auto ended_with = [&](const char* figures, const char* limits) {
    write({epoch(100, 13, 12),
           fmt::format(R"({{"type":"summary","outcome":"finished",{}}})", figures)});
    std::ofstream(folder_.path() / "limits.json") << limits;
    return measured_figures(folder_.path());
  };
  const char* odd_limits = R"({"fma_gflops":-1,"triad_gbs":1e16})";
  const auto odd = ended_with(R"("loss":1e16,"time_to_accuracy":{"seconds":1e13})", odd_limits);
  ASSERT_TRUE(odd);
  for (const auto& figure :
       {odd->final_loss, odd->seconds_to_target, odd->fma_gflops, odd->triad_gbs}) {
    EXPECT_FALSE(figure);
  }
  EXPECT_FALSE(ended_with(R"("loss":1,"accuracy":1.2)", odd_limits));
  const auto most = ended_with(R"("loss":-1e15,"accuracy":1,"val_loss":1,"val_accuracy":0,)"
                               R"("time_to_accuracy":{"seconds":1e12})",
                               R"({"fma_gflops":0,"triad_gbs":1e15})");
  EXPECT_EQ(most->final_loss, -1e15);
  EXPECT_EQ(most->final_accuracy, 1);
  EXPECT_EQ(most->val_accuracy, 0);
  EXPECT_EQ(most->seconds_to_target, 1e12);
  EXPECT_EQ(most->fma_gflops, 0);
  EXPECT_EQ(most->triad_gbs, 1e15);
  // What makes these rates, too: a billion images in a nanosecond.
  Cell cell;
  cell.status = CellStatus::measured;
  RunFigures quick = *odd;
  quick.seconds_per_epoch = 1e-9;
  quick.budget = Budget{.forward = 1e13};
  combine(cell, {quick}, 1e9, 1e9);
  EXPECT_FALSE(cell.images_per_second || cell.gflops || cell.budget);
  const Cell back = cell_from_json(to_json(cell), "here");
  EXPECT_EQ(back.seconds_per_epoch, 1e-9);
  EXPECT_FALSE(back.final_loss);
  for (const double seconds : {1e-10, 1e13}) {  // no table holds such a cell
    write({epoch(seconds, 13, 12), kSummary});
    EXPECT_FALSE(measured_figures(folder_.path())) << seconds;
  }
  for (const char* steps : {"-1", "1e3", "3000000000"}) {
    std::string line = epoch(100, 13, 12);
    line.replace(line.find("13"), 2, steps);
    write({line, kSummary});
    EXPECT_FALSE(measured_figures(folder_.path())) << steps;
  }
}

TEST_F(RunFiguresTest, HostileFilesHaveNoFigures) {
  constexpr std::size_t kMostLine = 1 << 20;
  constexpr std::uintmax_t kMostFile = std::uintmax_t{1} << 32;  // where steps are passed over
  const std::string longest(kMostLine - std::strlen(R"({"type":""})"), 'x');
  const auto line_of = [](const std::string& type) {
    return fmt::format(R"({{"type":"{}"}})", type);
  };
  write({epoch(100, 13, 12), line_of(longest), kSummary});
  EXPECT_TRUE(measured_figures(folder_.path()));
  write({epoch(100, 13, 12), line_of(longest + "x"), kSummary});
  EXPECT_FALSE(measured_figures(folder_.path()));
  write({epoch(100, 13, 12), kSummary});
  ASSERT_TRUE(measured_figures(folder_.path()));
  const auto limits = folder_.path() / "limits.json", metrics = folder_.path() / "metrics.jsonl";
  ASSERT_EQ(::mkfifo(limits.c_str(), 0600), 0);  // nobody writes to it
  EXPECT_FALSE(measured_figures(folder_.path()));
  std::filesystem::remove(limits);
  std::filesystem::resize_file(metrics, kMostFile + 1);
  EXPECT_FALSE(measured_figures(folder_.path()));
  std::filesystem::remove(metrics);
  ASSERT_EQ(::mkfifo(metrics.c_str(), 0600), 0);
  EXPECT_FALSE(measured_figures(folder_.path()));
  EXPECT_FALSE(scaled(1));
}

TEST(CombineTest, MedianLeastAndMostOfTheRepeats) {
  RunFigures a, b, c;
  a.seconds_per_epoch = 10;
  b.seconds_per_epoch = 40;
  c.seconds_per_epoch = 25;
  a.steps = 5, b.steps = 4, c.steps = 5;
  a.budget = Budget{.forward = 8, .other = 2};
  b.budget = Budget{.forward = 38, .other = 2};
  a.fma_gflops = 100, b.fma_gflops = 120;
  a.stolen = 0.5, b.stolen = 0, c.stolen = 0.125;
  a.cpu_wait = 0.25, b.cpu_wait = 0.75, c.cpu_wait = 0.5;
  Cell cell;
  combine(cell, {a, b, c}, 500, 2e9);
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 25);
  EXPECT_EQ(cell.repeats, (std::vector<double>{10, 40, 25}));
  EXPECT_DOUBLE_EQ(cell.spread->low, 10);
  EXPECT_DOUBLE_EQ(cell.spread->high, 40);
  EXPECT_EQ(cell.steps, 4);
  EXPECT_DOUBLE_EQ(*cell.images_per_second, 20);
  EXPECT_DOUBLE_EQ(*cell.gflops, 40);
  EXPECT_DOUBLE_EQ(cell.budget->forward, 23);  // 46 of 50 s, as part of 25
  EXPECT_DOUBLE_EQ(cell.budget->other, 2);
  EXPECT_DOUBLE_EQ(*cell.fma_gflops, 120);
  EXPECT_DOUBLE_EQ(*cell.stolen, 0.125);
  EXPECT_DOUBLE_EQ(*cell.cpu_wait, 0.5);
  EXPECT_FALSE(cell.triad_gbs);
  EXPECT_FALSE(cell.includes_warm_up);
  EXPECT_FALSE(cell.reached_target);  // none was asked for
  c.includes_warm_up = true;
  combine(cell, {a, c}, 500, 2e9);
  EXPECT_DOUBLE_EQ(*cell.seconds_per_epoch, 17.5);
  EXPECT_TRUE(cell.includes_warm_up);
}

TEST(CombineTest, WhoDidNotReachTheTargetTookLongerThanWhoDid) {
  RunFigures never;
  never.seconds_per_epoch = 1;
  never.had_target = true;
  const auto after = [&](double seconds) {
    RunFigures run = never;
    run.seconds_to_target = seconds;
    return run;
  };
  Cell cell;
  combine(cell, {after(30), after(10), after(20)}, 500, 2e9);
  EXPECT_EQ(cell.seconds_to_target, 20);
  EXPECT_EQ(cell.reached_target, 3);
  combine(cell, {after(30), never, after(10)}, 500, 2e9);  // 10, 30, later
  EXPECT_EQ(cell.seconds_to_target, 30);
  EXPECT_EQ(cell.reached_target, 2);
  combine(cell, {never, never, after(10)}, 500, 2e9);  // 10, later, later
  EXPECT_FALSE(cell.seconds_to_target);
  EXPECT_EQ(cell.reached_target, 1);
  combine(cell, {after(10), never}, 500, 2e9);
  EXPECT_FALSE(cell.seconds_to_target);
  combine(cell, {after(10), after(40), never, after(20)}, 500, 2e9);  // 10, 20, 40, later
  EXPECT_EQ(cell.seconds_to_target, 30);
  combine(cell, {never}, 500, 2e9);
  EXPECT_EQ(cell.reached_target, 0);
  EXPECT_FALSE(cell.seconds_to_target);
}

}  // namespace
}  // namespace cputrain::cells
