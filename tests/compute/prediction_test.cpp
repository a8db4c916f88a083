#include "compute/tally.h"

#include <gtest/gtest.h>

#include <vector>

namespace cputrain::compute {
namespace {

const float kNotANumber = std::nanf("");

std::optional<std::size_t> predicted(const std::vector<float>& outputs) {
  return predicted_class(std::span<const float>(outputs));
}

TEST(PredictedClass, IsTheFirstOnATieAndNoneWithoutNumbers) {
  EXPECT_EQ(predicted({0.2f, 0.4f, 0.4f}), 1u);
  EXPECT_EQ(predicted({0.5f}), 0u);
  EXPECT_EQ(predicted({0.6f}), 1u);
  EXPECT_EQ(predicted({}), std::nullopt);
  const std::vector<std::vector<float>> with_nan{{kNotANumber},
                                                 {0.2f, kNotANumber},
                                                 {kNotANumber, 0.2f},
                                                 {0.9f, 0.05f, kNotANumber},
                                                 {kNotANumber, kNotANumber}};
  for (const std::vector<float>& outputs : with_nan) {
    EXPECT_EQ(predicted(outputs), std::nullopt);
  }
}

TEST(AmongBest, CountsWhatIsMoreProbable) {
  const std::vector<float> p{0.1f, 0.3f, 0.2f, 0.3f, 0.1f};
  const std::vector<std::size_t> place{3, 0, 2, 1, 4};  // earlier classes win ties
  for (std::size_t truth = 0; truth < p.size(); ++truth) {
    for (std::size_t k = 1; k <= p.size(); ++k) {
      EXPECT_EQ(among_best(std::span<const float>(p), truth, k), place[truth] < k)
          << truth << " " << k;
    }
  }
  const std::vector<float> with_nan{0.9f, kNotANumber};
  EXPECT_FALSE(among_best(std::span<const float>(with_nan), 0, 5));
}

TEST(CountPrediction, RanksAmongMoreThanFiveClasses) {
  Tally tally;
  const std::vector<float> row{0.05f, 0.3f, 0.25f, 0.2f, 0.1f, 0.1f};
  for (std::size_t truth = 0; truth < 6; ++truth) {
    count_prediction(std::span<const float>(row), truth, tally);
  }
  EXPECT_EQ(tally.images, 6);
  EXPECT_EQ(tally.correct, 1);
  EXPECT_EQ(tally.among_five, 5);  // all but class 0
  EXPECT_EQ(tally.ranked, 6);
  count_prediction(std::span<const float>(row).first(5), 1, tally);
  EXPECT_EQ(tally.images, 7);
  EXPECT_EQ(tally.correct, 2);
  EXPECT_EQ(tally.ranked, 6);
  EXPECT_DOUBLE_EQ(*tally.top_five(), 5.0 / 6);
  EXPECT_FALSE(Tally{}.top_five());
}

}  // namespace
}  // namespace cputrain::compute
