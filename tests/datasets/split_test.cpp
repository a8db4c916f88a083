#include "datasets/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace cputrain::datasets {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(Apportion, LargestRemainders) {
  // Hamilton's method by hand: quotas 0.5, 1.5, 3; then 5.25, 3.5, 1.25.
  EXPECT_EQ(apportion(5, Sizes{10, 30, 60}), (Sizes{1, 1, 3}));
  EXPECT_EQ(apportion(10, Sizes{21, 14, 5}), (Sizes{5, 4, 1}));
  EXPECT_EQ(apportion(0, Sizes{3, 4}), (Sizes{0, 0}));
  EXPECT_EQ(apportion(7, Sizes{3, 4}), (Sizes{3, 4}));
  EXPECT_EQ(apportion(2, Sizes{0, 2, 0}), (Sizes{0, 2, 0}));
  EXPECT_EQ(apportion(0, Sizes{}), Sizes{});
}

int thirds(std::uint32_t sample) { return static_cast<int>(sample % 3); }

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), 0u);
  return samples;
}

TEST(Choose, PartsAreCompleteAndAscending) {
  const auto samples = numbers(100);
  const Division division = choose_stratified(samples, thirds, 3, 40, 1, Choice::limit_train);
  EXPECT_EQ(division.chosen.size(), 40u);
  EXPECT_TRUE(std::ranges::is_sorted(division.chosen));
  EXPECT_TRUE(std::ranges::is_sorted(division.rest));
  std::vector<std::uint32_t> all;
  std::ranges::merge(division.chosen, division.rest, std::back_inserter(all));
  EXPECT_EQ(all, samples);
}

TEST(Choose, IsAFunctionOfSeedAndUse) {
  const auto samples = numbers(100);
  const auto chosen = [&](std::uint64_t seed, Choice use, std::size_t total = 30) {
    return choose_stratified(samples, thirds, 3, total, seed, use).chosen;
  };
  EXPECT_EQ(chosen(1, Choice::limit_train), chosen(1, Choice::limit_train));
  EXPECT_NE(chosen(1, Choice::limit_train), chosen(2, Choice::limit_train));
  EXPECT_NE(chosen(1, Choice::limit_train), chosen(1, Choice::limit_validation));
  EXPECT_TRUE(
      std::ranges::includes(chosen(1, Choice::validation, 60), chosen(1, Choice::validation, 30)));
}

/// Every sample is chosen about equally often: 1000 draws of a fifth, mean 200, deviation 12.6.
TEST(Choose, IsEven) {
  std::vector<int> count(60);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    for (const auto sample :
         choose_stratified(numbers(60), thirds, 3, 12, seed, Choice::validation).chosen) {
      ++count[sample];
    }
  }
  EXPECT_GT(*std::ranges::min_element(count), 200 - 63);
  EXPECT_LT(*std::ranges::max_element(count), 200 + 63);
}

TEST(SplitValidation, KeepsOneOfEveryClassForTraining) {
  const Division division = split_validation(numbers(6), thirds, 3, 0.9, 1);
  EXPECT_EQ(division.chosen.size(), 3u);
  std::vector<int> left;
  for (const auto sample : division.rest) left.push_back(thirds(sample));
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(split_validation(numbers(25000), thirds, 3, 0.1, 1).chosen.size(), 2500u);
}

TEST(Level, IsAsEqualAsTheCountsAllow) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(level(9, Counts{5, 5, 5}), (Counts{3, 3, 3}));
  EXPECT_EQ(level(11, Counts{5, 5, 5}), (Counts{4, 4, 3}));
  EXPECT_EQ(level(11, Counts{50, 2, 5}), (Counts{5, 2, 4}));
  EXPECT_EQ(level(12, Counts{5, 2, 5}), (Counts{5, 2, 5}));
  EXPECT_EQ(level(0, Counts{5, 2}), (Counts{0, 0}));
  EXPECT_EQ(level(2, Counts{0, 0, 9, 1}), (Counts{0, 0, 1, 1}));
}

}  // namespace
}  // namespace cputrain::datasets
