#include "train/answers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/threads/threads_communicator.h"
#include "compute/prediction.h"

namespace cputrain::train {
namespace {

const float kNan = std::nanf("");

std::optional<std::size_t> predicted(const std::vector<float>& outputs) {
  return compute::predicted_class(std::span<const float>(outputs));
}

TEST(PredictedClass, IsTheFirstOnATieAndNoneWithoutNumbers) {
  EXPECT_EQ(predicted({0.2f, 0.4f, 0.4f}), 1u);
  EXPECT_EQ(predicted({0.5f}), 0u);
  EXPECT_EQ(predicted({0.6f}), 1u);
  EXPECT_EQ(predicted({}), std::nullopt);
  const std::vector<std::vector<float>> no_numbers{
      {kNan}, {0.2f, kNan}, {kNan, 0.2f}, {0.9f, 0.05f, kNan}, {kNan, kNan}};
  for (const std::vector<float>& outputs : no_numbers) {
    EXPECT_EQ(predicted(outputs), std::nullopt);
  }
}

TEST(AmongBest, CountsWhatIsMoreProbable) {
  const std::vector p{0.1f, 0.3f, 0.2f, 0.3f, 0.1f};
  const std::vector<std::size_t> place{3, 0, 2, 1, 4};  // earlier classes win ties
  for (std::size_t truth = 0; truth < p.size(); ++truth) {
    for (std::size_t k = 1; k <= p.size(); ++k) {
      EXPECT_EQ(among_best(p, truth, k), place[truth] < k) << truth << " " << k;
    }
  }
  EXPECT_FALSE(among_best(std::vector{0.9f, kNan}, 0, 5));
}

TEST(RankAnswers, CountsTheFiveBestOfMoreThanFive) {
  compute::Tally tally;
  const std::vector<float> row{0.05f, 0.3f, 0.25f, 0.2f, 0.1f, 0.1f};
  for (std::int32_t label = 0; label < 6; ++label) {
    rank_answers(tally, std::vector{label}, row);
  }
  EXPECT_EQ(tally.among_five, 5);  // all but class 0
  EXPECT_EQ(tally.ranked, 6);
  rank_answers(tally, {}, {});
  rank_answers(tally, std::vector{1, 0}, std::vector{0.5f, 0.5f, 0.2f, 0.8f});
  EXPECT_EQ(tally.ranked, 6);
  EXPECT_DOUBLE_EQ(*tally.top_five(), 5.0 / 6);
  EXPECT_FALSE(compute::Tally{}.top_five());
}

TEST(AnswerCounts, CountEveryImageOnce) {
  AnswerCounts counts(3);
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
  EXPECT_EQ(counts.answered(0), 2);
  EXPECT_EQ(counts.correct(1), 1);
  EXPECT_EQ(counts.cell(1, 0), 1);
  EXPECT_EQ(counts.cell(1, 1), 1);
  EXPECT_EQ(counts.actual(2), 1);  // its only image has no answer
  EXPECT_EQ(counts.answered(2), 0);
}

TEST(AnswerCounts, KeepTotalsWithoutAMatrixOfManyClasses) {
  AnswerCounts counts(AnswerCounts::kMostInMatrix + 1);
  EXPECT_FALSE(counts.has_matrix());
  std::vector<float> outputs(counts.classes());
  outputs[7] = 1;
  counts.add(std::vector<std::int32_t>{7}, outputs);
  EXPECT_EQ(counts.correct(7), 1);
}

TEST(AnswerCounts, AddUpOverRanks) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    AnswerCounts counts(2);
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
}  // namespace cputrain::train
