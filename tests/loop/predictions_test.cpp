#include "loop/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

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
