// metrics.jsonl: its lines as they are written, and whatever a file of that name may hold.

#include "runfiles/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/text.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::runfiles {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class MetricsTest : public ::testing::Test {
 protected:
  Metrics read(const std::string& lines, bool with_steps = true) {
    std::ofstream(file()) << lines;
    return with_steps ? read_metrics_and_steps(file()) : read_metrics(file());
  }
  std::filesystem::path file() const { return folder_.path() / kMetricsName; }

  const testing::TemporaryFolder folder_;
};

std::string step(int number, double loss = 0.5) {
  return to_text(StepLine{.step = static_cast<std::uint64_t>(number),
                          .epoch = 1,
                          .images = 8,
                          .figures = {loss, 0.25},
                          .learning_rate = 0.1,
                          .seconds = 2,
                          .nan = std::isnan(loss)}) +
         "\n";
}

std::string epoch(int number) {
  return to_text(EpochLine{.epoch = number, .steps = 3, .images = 24, .seconds = 6}) + "\n";
}

std::string troubles(const Metrics& metrics) { return join(metrics.troubles, "; "); }

TEST_F(MetricsTest, LinesAreThoseOfTheGuide) {
  EXPECT_EQ(step(3),
            "{\"type\":\"step\",\"step\":3,\"epoch\":1,\"images\":8,\"images_seen\":null,\"loss\":"
            "0.5,\"accuracy\":0.25,\"lr\":0.1,\"seconds\":2.0}\n");
  EXPECT_EQ(step(3, kNan),
            "{\"type\":\"step\",\"step\":3,\"epoch\":1,\"images\":8,\"images_seen\":null,\"loss\":"
            "null,\"nan\":true,\"accuracy\":0.25,\"lr\":0.1,\"seconds\":2.0}\n");
  EpochLine line{.epoch = 2, .steps = 3, .images = 24, .seconds = 6};
  line.train = {0.5, 0.25, 0.75};
  line.validation = {kNan, std::nullopt};
  line.validation_seconds = 1;
  line.nan = true;
  line.straggler = {1, "vm", 0.5};
  EXPECT_EQ(to_text(line),
            R"({"type":"epoch","epoch":2,"steps":3,"images":24,"seconds":6.0,)"
            R"("images_per_second":4.0,"loss":0.5,"accuracy":0.25,"top_5_accuracy":0.75,)"
            R"("val_loss":null,"nan":true,"val_accuracy":null,"val_seconds":1.0,"lr":0.0,)"
            R"("budget":null,"settled":null,"straggler":{"rank":1,"host":"vm","seconds":0.5},)"
            R"("stolen":null,"cpu_wait":null})");
}

TEST_F(MetricsTest, WhatWasWrittenIsRead) {
  EpochLine line{.epoch = 1, .steps = 3, .images = 24, .seconds = 6};
  line.train = {0.5, 0.25};
  line.validation = {kNan, std::nullopt};
  line.averaged = {0.125, 0.5, 1.0};
  line.nan = true;
  line.budget = Budget{.forward = 4, .other = 2};
  line.settled = loop::SettledSteps{.steps = 2, .seconds = 3, .budget = {.forward = 3}};
  line.taken.cpu_wait = 0.5;
  line.skipped = 1;
  line.from_features = 20;
  line.validation_images = 9;
  line.kernels = "dd";
  const ResumeLine resume{.step = 3, .epoch = 2, .ranks = 4, .left_out = {2}, .lost_seconds = 7};
  SummaryLine summary{.steps = 6, .epochs = 2, .seconds = 20, .target_accuracy = 0.9};
  summary.best_epoch = 1;
  summary.best_loss = 0.5;
  summary.best_accuracy = 0.25;
  summary.monitor = optim::Monitor::accuracy;
  summary.train = {kNan, std::nullopt};
  summary.density = 0.75;
  summary.program = {.all = 9, .start_up = 2, .training = 5, .evaluation = 1};
  summary.training = R"({"model":"tiny"})";
  const Metrics read =
      this->read(to_text(line) + "\n" + to_text(resume) + "\n" + step(4) + to_text(summary) + "\n");
  EXPECT_TRUE(read.troubles.empty());
  EXPECT_EQ(read.lines, 4u);
  ASSERT_EQ(read.epochs.size(), 1u);
  EXPECT_EQ(to_text(read.epochs[0]), to_text(line));
  EXPECT_TRUE(read.epochs[0].is_settled());
  ASSERT_EQ(read.resumes.size(), 1u);
  EXPECT_EQ(to_text(read.resumes[0]), to_text(resume));
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(to_text(read.steps[0]) + "\n", step(4));
  ASSERT_TRUE(read.summary);
  EXPECT_EQ(to_text(*read.summary), to_text(summary));
  EXPECT_FALSE(read.summary->reached);
  EXPECT_EQ(to_text(*summary_at_end(file())), to_text(summary));
}

TEST_F(MetricsTest, WhereItGoesBackTheLaterLinesHold) {
  const Metrics read =
      this->read(step(1) + step(2) + epoch(1) + step(3) + epoch(2) + step(2, 4) + epoch(1));
  ASSERT_EQ(read.steps.size(), 2u);
  EXPECT_EQ(read.steps[1].figures.loss, 4);
  ASSERT_EQ(read.epochs.size(), 1u);
}

TEST_F(MetricsTest, TheLastStepIsKnownWhereNothingCameAfterIt) {
  for (const bool steps : {true, false}) {
    EXPECT_EQ(read(step(1) + step(2, kNan), steps).last_step->step, 2u);
    EXPECT_TRUE(read(step(1) + step(2, kNan), steps).last_step->nan);
    EXPECT_FALSE(read(step(1) + epoch(1), steps).last_step);
    EXPECT_EQ(read(step(1) + step(2), steps).steps.size(), steps ? 2u : 0u);
  }
}

TEST_F(MetricsTest, LinesThatAreNotOfARunAreToldAndPassedOver) {
  const struct {
    std::string lines, trouble;
  } cases[] = {
      {step(1) + "7\n" + step(2), "line 2 is no JSON object (the others count)"},
      {step(1) + "{\"type\":\"ep", "its last line is cut off (the others count)"},
      {"nonsense", "line 1 is no JSON object (the others count)"},
      {"[]\n" + step(1) + "\n{", "line 1 is no JSON object (3 such lines; the others count)"},
      {R"({"type":"epoch","epoch":1})"
       "\n" +
           step(1),
       "line 1 is no epoch as a run writes it (the others count)"},
      {R"({"type":"summary","outcome":"lost"})"
       "\n" +
           step(1),
       "line 1 is no summary as a run writes it (the others count)"},
      {step(1) + "{}\n", "line 2 is no line of a run (the others count)"},
      {R"({"type":"news"})"
       "\n" +
           step(1),
       ""},
      {step(1) + std::string((1 << 20) + 1, 'x') + "\n", "has a line of more than 1.05 MB"},
      {"7\n" + step(1) + std::string((1 << 20) + 1, 'x'),
       "has a line of more than 1.05 MB; line 1 is no JSON object (the others count)"},
  };
  for (const auto& c : cases) {
    const Metrics read = this->read(c.lines);
    EXPECT_EQ(troubles(read), c.trouble) << c.lines.substr(0, 200);
    EXPECT_LE(read.steps.size(), 2u);
  }
  EXPECT_FALSE(read_metrics_and_steps(folder_.path() / "gone").troubles.empty());
}

TEST_F(MetricsTest, NumbersThatNoRunWritesMakeALineBad) {
  const std::string good = epoch(1);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"steps\":3", "\"steps\":-1"},
           {"\"steps\":3", "\"steps\":1e300"},
           {"\"steps\":3", "\"steps\":1.5"},
           {"\"images\":24", "\"images\":-24"},
           {"\"seconds\":6.0", "\"seconds\":-1"},
           {"\"seconds\":6.0", "\"seconds\":\"9\""},
           {"\"accuracy\":null", "\"accuracy\":1.5"},
           {"\"budget\":null", "\"budget\":7"},
           {"\"cpu_wait\":null", "\"straggler\":[]"}}) {
    std::string line = good;
    ASSERT_NE(line.find(from), line.npos) << from;
    line.replace(line.find(from), from.size(), to);
    const Metrics read = this->read(line + epoch(2));
    EXPECT_EQ(read.epochs.size(), 1u) << to;
    EXPECT_EQ(troubles(read), "line 1 is no epoch as a run writes it (the others count)") << to;
  }
}

TEST_F(MetricsTest, ASummaryIsTheLastLineOrNone) {
  const std::string summary = to_text(SummaryLine{.steps = 3}) + "\n";
  EXPECT_TRUE(read(epoch(1) + summary).summary);
  EXPECT_TRUE(summary_at_end(file()));
  for (const std::string& lines : {epoch(1), summary + step(4), summary + epoch(2),
                                   summary.substr(0, summary.size() - 1), std::string()}) {
    const bool cut = lines.size() + 1 == summary.size();
    EXPECT_EQ(read(lines).summary.has_value(), cut) << lines;
    EXPECT_FALSE(summary_at_end(file())) << lines;
  }
}

}  // namespace
}  // namespace cputrain::runfiles
