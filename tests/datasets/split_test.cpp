#include "datasets/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>

namespace cputrain::datasets {
namespace {

using Sizes = std::vector<std::size_t>;

Sizes counted_up(std::size_t count) {
  Sizes order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Sizes shared(std::size_t total, const Sizes& counts) {
  return apportion(total, counts, counts, counted_up(counts.size()));
}

TEST(Apportion, LargestRemainders) {
  // Hamilton's method by hand: quotas 0.5, 1.5, 3; then 5.25, 3.5, 1.25.
  EXPECT_EQ(shared(5, {10, 30, 60}), (Sizes{1, 1, 3}));
  EXPECT_EQ(shared(10, {21, 14, 5}), (Sizes{5, 4, 1}));
  EXPECT_EQ(shared(0, {3, 4}), (Sizes{0, 0}));
  EXPECT_EQ(shared(7, {3, 4}), (Sizes{3, 4}));
  EXPECT_EQ(shared(2, {0, 2, 0}), (Sizes{0, 2, 0}));
  EXPECT_EQ(shared(0, {}), Sizes{});
}

TEST(Apportion, EqualRemaindersAreServedInOrder) {
  const Sizes alike{5, 5, 5, 5};
  EXPECT_EQ(apportion(6, alike, alike, Sizes{2, 0, 3, 1}), (Sizes{2, 1, 2, 1}));
  // Quotas 1.5, 1.5, 3: the order decides between the first two alone.
  const Sizes counts{2, 2, 4};
  EXPECT_EQ(apportion(6, counts, counts, Sizes{2, 1, 0}), (Sizes{1, 2, 3}));
}

TEST(Apportion, WhatALimitLeavesOthersGet) {
  // Shares of 10 are 2.5, 2.5 and 5; the second has room for 1, and 9 are shared as 3 and 6.
  EXPECT_EQ(apportion(10, Sizes{1, 1, 2}, Sizes{9, 1, 9}, counted_up(3)), (Sizes{3, 1, 6}));
  // Shares of 12 would give the third more than its 8, and others get what is left.
  EXPECT_EQ(apportion(12, Sizes{1, 1, 4}, Sizes{9, 1, 8}, counted_up(3)), (Sizes{3, 1, 8}));
}

/// Hamilton's method without limits, ties in the order that the seed draws.
Sizes apportioned(std::size_t total, const Sizes& counts, std::uint64_t seed) {
  const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  Sizes parts(counts.size()), order = class_order(counts.size(), seed);
  if (sum == 0) return parts;
  std::size_t given = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) given += parts[i] = total * counts[i] / sum;
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return total * counts[i] % sum; });
  for (std::size_t k = 0; given < total; ++k, ++given) ++parts[order[k]];
  return parts;
}

/// Labels of samples 0, 1, ...: counts[0] of class 0, then counts[1] of class 1.
struct Made {
  explicit Made(const Sizes& counts) {
    for (std::size_t c = 0; c < counts.size(); ++c)
      of.insert(of.end(), counts[c], static_cast<int>(c));
    samples.resize(of.size());
    std::iota(samples.begin(), samples.end(), 0u);
    labels = {[this](std::uint32_t sample) { return of[sample]; }, static_cast<int>(counts.size())};
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  Sizes by_class(const std::vector<std::uint32_t>& part) const {
    Sizes sizes(static_cast<std::size_t>(labels.classes));
    for (const std::uint32_t sample : part) ++sizes[static_cast<std::size_t>(of[sample])];
    return sizes;
  }

  std::vector<int> of;
  std::vector<std::uint32_t> samples;
  Labels labels;
};

std::vector<Sizes> some_counts() {
  std::vector<Sizes> all;
  std::mt19937 random(1);
  for (int n = 0; n < 200; ++n) {
    Sizes counts(1 + random() % 9);
    for (std::size_t& count : counts) count = random() % 7;  // many are alike, and some none
    all.push_back(counts);
  }
  return all;
}

TEST(Choose, SharesAreThoseOfHamiltonsMethod) {
  for (const Sizes& counts : some_counts()) {
    const Made made(counts);
    for (std::size_t total = 0; total <= made.samples.size(); ++total) {
      SCOPED_TRACE(::testing::PrintToString(counts) + std::to_string(total));
      const auto chosen = choose_stratified(made.samples, made.samples, made.labels, total,
                                            {7, Choice::limit_train})
                              .chosen;
      EXPECT_EQ(made.by_class(chosen), apportioned(total, counts, 7));
      const double split = static_cast<double>(total) / static_cast<double>(made.samples.size());
      if (!(split >= 0)) continue;
      Sizes kept = apportioned(total, counts, 7);
      for (std::size_t c = 0; c < counts.size(); ++c) {
        kept[c] = std::min(kept[c], std::max<std::size_t>(counts[c], 1) - 1);
      }
      const Division parts = split_validation(made.samples, made.labels, split, {7});
      EXPECT_EQ(made.by_class(parts.chosen), kept);
    }
  }
}

/// Five images of each of 100 classes, and which of them have one in a part.
class ManySmallClasses : public ::testing::Test {
 protected:
  std::set<int> classes_of(const std::vector<std::uint32_t>& part) const {
    std::set<int> classes;
    for (const std::uint32_t sample : part) classes.insert(made_.of[sample]);
    return classes;
  }
  std::set<int> validated(std::uint64_t seed) const {
    return classes_of(split_validation(made_.samples, made_.labels, 0.1, {seed}).chosen);
  }
  std::set<int> trained(std::uint64_t seed, std::size_t total, bool balanced) const {
    const auto rest = split_validation(made_.samples, made_.labels, 0.1, {seed}).rest;
    const Draw by{seed, Choice::limit_train};
    return classes_of(balanced
                          ? choose_balanced(rest, made_.labels, total, by).chosen
                          : choose_stratified(rest, made_.samples, made_.labels, total, by).chosen);
  }
  const Made made_{Sizes(100, 5)};
};

TEST_F(ManySmallClasses, TheSeedDrawsThoseThatAreValidated) {
  std::vector<int> count(100);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::set<int> classes = validated(seed);
    EXPECT_EQ(classes.size(), 50u);
    EXPECT_EQ(classes, validated(seed));
    for (const int c : classes) ++count[static_cast<std::size_t>(c)];
  }
  // Each in half of them: 200, with a deviation of 10.
  EXPECT_GT(*std::ranges::min_element(count), 150);
  EXPECT_LT(*std::ranges::max_element(count), 250);
}

TEST_F(ManySmallClasses, AFewImagesForTrainingAreOfClassesThatAreValidated) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::set<int> held = validated(seed);
    for (const bool balanced : {false, true}) {
      EXPECT_EQ(trained(seed, 50, balanced), held);
      EXPECT_TRUE(std::ranges::includes(held, trained(seed, 8, balanced)));
      EXPECT_EQ(trained(seed, 100, balanced).size(), 100u);
    }
  }
}

TEST(ClassOrder, IsAPermutationOfTheSeed) {
  Sizes sorted = class_order(50, 3);
  EXPECT_NE(sorted, counted_up(50));
  EXPECT_EQ(sorted, class_order(50, 3));
  EXPECT_NE(sorted, class_order(50, 4));
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, counted_up(50));
}

const Labels kThirds{[](std::uint32_t sample) { return static_cast<int>(sample % 3); }, 3};

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), 0u);
  return samples;
}

TEST(Choose, PartsAreCompleteAndAscending) {
  const auto samples = numbers(100);
  const Division division =
      choose_stratified(samples, samples, kThirds, 40, {1, Choice::limit_train});
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
    return choose_stratified(samples, samples, kThirds, total, {seed, use}).chosen;
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
  const auto samples = numbers(60);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    for (const auto sample :
         choose_stratified(samples, samples, kThirds, 12, {seed, Choice::validation}).chosen) {
      ++count[sample];
    }
  }
  EXPECT_GT(*std::ranges::min_element(count), 200 - 63);
  EXPECT_LT(*std::ranges::max_element(count), 200 + 63);
}

TEST(SplitValidation, KeepsOneOfEveryClassForTraining) {
  const Division division = split_validation(numbers(6), kThirds, 0.9, {1});
  EXPECT_EQ(division.chosen.size(), 3u);
  std::vector<int> left;
  for (const auto sample : division.rest) left.push_back(kThirds.of(sample));
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(split_validation(numbers(25000), kThirds, 0.1, {1}).chosen.size(), 2500u);
}

TEST(ChooseBalanced, IsAsEqualAsTheCountsAllow) {
  const auto sizes = [](std::size_t total, const Sizes& counts) {
    const Made made(counts);
    return made.by_class(choose_balanced(made.samples, made.labels, total, {1}).chosen);
  };
  EXPECT_EQ(sizes(9, {5, 5, 5}), (Sizes{3, 3, 3}));
  EXPECT_EQ(sizes(10, {50, 2, 5}), (Sizes{4, 2, 4}));
  EXPECT_EQ(sizes(12, {5, 2, 5}), (Sizes{5, 2, 5}));
  EXPECT_EQ(sizes(0, {5, 2}), (Sizes{0, 0}));
  EXPECT_EQ(sizes(4, {0, 0, 9, 1}), (Sizes{0, 0, 3, 1}));
  Sizes odd = sizes(11, {5, 5, 5});
  std::ranges::sort(odd);
  EXPECT_EQ(odd, (Sizes{3, 4, 4}));
}

}  // namespace
}  // namespace cputrain::datasets
