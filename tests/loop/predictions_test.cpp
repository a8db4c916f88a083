#include "loop/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/threads/threads_communicator.h"

namespace cputrain::loop {
namespace {

const float kNan = std::nanf("");

TEST(PredictionCounts, CountEveryImageOnce) {
  PredictionCounts counts(3);
  const std::vector<std::int32_t> labels{0, 1, 1, 2};
  const std::vector<float> outputs{0.8f, 0.1f, 0.1f, 0.5f, 0.2f, 0.3f,
                                   0.1f, 0.7f, 0.2f, kNan, 0.1f, 0.2f};
  counts.add(labels, outputs);
  counts.add({}, {});
  EXPECT_EQ(counts.images(), 4);
  EXPECT_EQ(counts.correct(), 2);
  EXPECT_EQ(counts.among_five(), 3);
  EXPECT_EQ(counts.undecided(), 1);
  EXPECT_EQ(counts.actual(1), 2);
  EXPECT_EQ(counts.predicted(0), 2);
  EXPECT_EQ(counts.correct(1), 1);
  EXPECT_EQ(counts.cell(1, 0), 1);
  EXPECT_EQ(counts.cell(1, 1), 1);
  EXPECT_EQ(counts.actual(2), 1);  // its only image has no prediction
  EXPECT_EQ(counts.predicted(2), 0);
}

TEST(PredictionCounts, KeepTotalsWithoutAMatrixOfManyClasses) {
  PredictionCounts counts(PredictionCounts::kMostInMatrix + 1);
  EXPECT_FALSE(counts.has_matrix());
  std::vector<float> outputs(counts.classes());
  outputs[7] = 1;
  counts.add(std::vector<std::int32_t>{7}, outputs);
  EXPECT_EQ(counts.correct(7), 1);
}

TEST(ClassCounts, ARatioOfNothingIsNone) {
  const ClassCounts half{10, 8, 6}, none{}, unseen{0, 4, 0}, unpredicted{5, 0, 0};
  EXPECT_EQ(half.recall(), 0.6);
  EXPECT_EQ(half.precision(), 0.75);
  EXPECT_DOUBLE_EQ(half.f1().value(), 2 * 0.6 * 0.75 / (0.6 + 0.75));
  EXPECT_FALSE(none.recall() || none.precision() || none.f1());
  EXPECT_FALSE(unseen.recall());
  EXPECT_EQ(unseen.precision(), 0);
  EXPECT_EQ(unseen.f1(), 0);
  EXPECT_FALSE(unpredicted.precision());
  EXPECT_EQ(unpredicted.f1(), 0);
}

// scikit-learn's classification_report of the same: macro avg 0.17, 0.33, 0.22 (zero_division=0).
TEST(MacroAverages, AreThoseOfClassesThatOccur) {
  PredictionCounts counts(4);
  EXPECT_FALSE(counts.macro_averages());
  std::vector<float> outputs;
  for (int i = 0; i < 4; ++i) outputs.insert(outputs.end(), {0.7f, 0.1f, 0.1f, 0.1f});
  counts.add(std::vector<std::int32_t>{0, 0, 1, 2}, outputs);  // all are said to be of class 0
  const MacroAverages macro = counts.macro_averages().value();
  EXPECT_DOUBLE_EQ(macro.recall, 1.0 / 3);
  EXPECT_DOUBLE_EQ(macro.precision, 0.5 / 3);
  EXPECT_DOUBLE_EQ(macro.f1, 2.0 / 3 / 3);  // of class 0: 2 * 2 / (2 + 4)
}

std::optional<double> area_of(const std::vector<float>& outputs,
                              const std::vector<std::int32_t>& labels, int ranks = 1) {
  std::optional<double> area;
  threads::run_ranks(ranks, [&](comm::Communicator& c) {
    RocScores scores;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (static_cast<int>(i) % ranks != c.rank()) continue;
      scores.add(std::span(labels).subspan(i, 1), std::span(outputs).subspan(i, 1));
    }
    const auto mine = scores.area(c);
    if (c.rank() == 0) area = mine;
  });
  return area;
}

TEST(RocScores, AreaIsThePartOfPairsInTheirOrder) {
  EXPECT_EQ(area_of({0.1f, 0.4f, 0.35f, 0.8f}, {0, 0, 1, 1}), 0.75);
  EXPECT_EQ(area_of({0.1f, 0.2f, 0.8f, 0.9f}, {0, 0, 1, 1}), 1.0);
  EXPECT_EQ(area_of({0.1f, 0.2f, 0.8f, 0.9f}, {1, 1, 0, 0}), 0.0);
  EXPECT_EQ(area_of({0.5f, 0.5f, 0.5f}, {0, 1, 1}), 0.5);            // ties alone
  EXPECT_EQ(area_of({0.5f, 0.5f, 0.5f, 0.9f}, {0, 0, 1, 1}), 0.75);  // (1/2 + 1/2 + 1 + 1) / 4
  EXPECT_EQ(area_of({0.3f, 0.7f, 0.7f, 0.7f}, {0, 0, 1, 1}), 0.75);  // (1 + 1/2) * 2 / 4
}

TEST(RocScores, WithoutBothClassesOrANumberThereIsNone) {
  EXPECT_FALSE(area_of({0.5f, 0.6f}, {1, 1}));
  EXPECT_FALSE(area_of({0.5f, 0.6f}, {0, 0}));
  EXPECT_FALSE(area_of({}, {}));
  EXPECT_FALSE(area_of({0.5f, kNan}, {0, 1}));
}

TEST(RocScores, TwoColumnsHaveTheSecondClassInTheSecond) {
  threads::run_ranks(1, [](comm::Communicator& c) {
    RocScores scores;
    scores.add(std::vector<std::int32_t>{0, 1}, std::vector<float>{0.75f, 0.25f, 0.5f, 0.5f});
    EXPECT_EQ(scores.area(c), 1.0);
  });
}

TEST(RocScores, AreTheSameAtAnyNumberOfRanks) {
  std::mt19937 dice(3);
  std::vector<float> outputs;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 101; ++i) {
    labels.push_back(static_cast<std::int32_t>(dice() % 2));
    outputs.push_back(0.1f * static_cast<float>(dice() % 11));  // many ties
  }
  double pairs = 0, right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (labels[i] != 1 || labels[k] != 0) continue;
      ++pairs;
      right += outputs[i] > outputs[k] ? 1 : outputs[i] == outputs[k] ? 0.5 : 0;
    }
  }
  for (const int ranks : {1, 2, 3}) {
    EXPECT_DOUBLE_EQ(area_of(outputs, labels, ranks).value(), right / pairs) << ranks;
  }
}

TEST(PredictionCounts, AddUpOverRanks) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    PredictionCounts counts(2);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(communicator.rank()), 1);
    const std::vector<float> outputs(labels.size(), 0.75f);  // one column: of class 1
    counts.add(labels, outputs);
    counts.sum(communicator);
    EXPECT_EQ(counts.images(), 3);
    EXPECT_EQ(counts.cell(1, 1), 3);
    EXPECT_EQ(counts.among_five(), 3);
  });
}

}  // namespace
}  // namespace cputrain::loop
