// scaling/report/trainings/run_record.h: what eval leaves in a run's folder, also where that
// is damaged.

#include "scaling/report/trainings/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "core/statistics/statistics.h"
#include "tests/support/temporary_folder.h"
#include "training/run/run_logs.h"

namespace cputrain::report {
namespace {

using training::EvaluationFacts;

class EvaluationLog : public ::testing::Test {
 protected:
  EvaluationLog() : file(folder.path() / "evaluations.jsonl") {}

  void log(const std::string& data, double accuracy, const std::string& looks = "") const {
    EvaluationFacts facts;
    facts.looks = looks;
    facts.weights = (folder.path() / "best.safetensors").string();
    facts.data = data;
    facts.part = "test";
    facts.images = 40;
    facts.accuracy = accuracy;
    facts.loss = 0.25;
    facts.command = "./cputrain eval --weights run";
    training::log_evaluation(file, facts);
  }
  std::vector<EvaluationFacts> read() { return read_evaluations(file, troubles); }

  const testing::TemporaryFolder folder;
  const std::filesystem::path file;
  std::vector<std::string> troubles;
};

TEST_F(EvaluationLog, HasTheNewestOfEachDataSetTheNewestFirst) {
  EXPECT_TRUE(read().empty());
  log("photos", 0.5);
  log("others", 0.75);
  log("photos", 0.875);
  const auto found = read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].data, "photos");
  EXPECT_EQ(found[0].accuracy, 0.875);
  EXPECT_EQ(found[0].weights, "best.safetensors");  // wherever the run is moved to
  EXPECT_EQ(found[0].images, 40);
  EXPECT_EQ(found[0].loss, 0.25);
  EXPECT_EQ(found[0].part, "test");
  EXPECT_EQ(found[0].command, "./cputrain eval --weights run");
  EXPECT_EQ(found[1].accuracy, 0.75);
  EXPECT_TRUE(troubles.empty());
}

TEST_F(EvaluationLog, TellsEvaluationsWithMirrorImagesApart) {
  log("photos", 0.5);
  log("photos", 0.75, "flip");
  const auto found = read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].looks, "flip");
  EXPECT_EQ(found[0].accuracy, 0.75);
  EXPECT_EQ(found[1].looks, "");
  EXPECT_EQ(found[1].accuracy, 0.5);
}

TEST_F(EvaluationLog, ALossThatIsNaNIsNotKnown) {
  EvaluationFacts facts;
  facts.images = 3;
  facts.loss = std::numeric_limits<double>::quiet_NaN();
  training::log_evaluation(file, facts);
  const auto found = read();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].finite_loss());
  EXPECT_FALSE(found[0].accuracy);
}

TEST_F(EvaluationLog, DamagedLinesAreCountedAndPassedOver) {
  log("photos", 0.5);
  std::ofstream(file, std::ios::app) << "{\"images\":-1}\n[]\n{\"images\":2,\"accuracy\":7}\n{\"da";
  const auto found = read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0].accuracy);
  EXPECT_EQ(found[1].data, "photos");
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_EQ(troubles[0], "evaluations.jsonl: 3 lines cannot be read (the others count)");
}

TEST_F(EvaluationLog, ALineAfterOneThatWasCutOffIsKept) {
  std::ofstream(file) << R"({"date":"2026)";
  log("photos", 0.5);
  const auto found = read();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].data, "photos");
  EXPECT_EQ(troubles.size(), 1u);
}

TEST_F(EvaluationLog, OfVeryManyTheNewestAreRead) {
  std::ofstream out(file);
  for (int i = 1; i <= 1000; ++i) out << R"({"data":"d)" << i << R"(","images":)" << i << "}\n";
  out.close();
  const auto found = read();
  ASSERT_EQ(found.size(), 100u);
  EXPECT_EQ(found.front().data, "d1000");
  EXPECT_EQ(found.back().data, "d901");
}

// Wilson's interval solves (p - q)^2 / z^2 = q * (1 - q) / n for q.
TEST(AccuracyInterval, HasEndsFromWhichTheAccuracyIsAsFarAsChanceAllows) {
  for (const auto& [accuracy, images] : {std::pair(0.9, 250.0), {1.0, 10.0}, {0.0, 3.0}}) {
    const Interval range = accuracy_interval(accuracy, images);
    for (const double end : {range.low, range.high}) {
      const double variance = end * (1 - end) / images;
      EXPECT_NEAR(std::pow((accuracy - end) / 1.959964, 2), variance, 1e-12)
          << accuracy << " on " << images;
    }
  }
}

}  // namespace
}  // namespace cputrain::report
