// Which wrong predictions are kept, and that it does not depend on the ranks that met them.

#include "loop/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/threads/threads_communicator.h"

namespace cputrain::loop {
namespace {

/// Places of the images, the surest first.
std::vector<std::uint64_t> places(const std::vector<WrongPrediction>& errors) {
  std::vector<std::uint64_t> list;
  for (const WrongPrediction& error : errors) list.push_back(error.image);
  return list;
}

std::vector<WrongPrediction> gathered(const SurestErrors& errors) {
  std::vector<WrongPrediction> all;
  threads::run_ranks(1, [&](comm::Communicator& c) { all = errors.gather(c); });
  return all;
}

using Places = std::vector<std::uint64_t>;

TEST(SurestErrors, KeepsTheSurestAndOfEqualOnesTheEarlier) {
  SurestErrors errors(3);
  const float nan = std::nanf("");
  errors.add(Places{10, 11, 12, 13, 14, 15}, std::vector<std::int32_t>{0, 1, 0, 2, 0, 0},
             std::vector<float>{0.1f, 0.6f, 0.3f,  // wrong
                                0.1f, 0.9f, 0.0f,  // right
                                0.0f, 0.2f, 0.8f,  // wrong
                                0.2f, 0.6f, 0.2f,  // wrong, as sure as the first
                                nan, 0.5f, 0.5f,   // no prediction
                                0.3f, 0.4f, 0.3f});
  const auto kept = gathered(errors);
  EXPECT_EQ(places(kept), (Places{12, 10, 13}));
  EXPECT_EQ(kept[0], (WrongPrediction{12, 0, 2, 0.8f, 0.0f}));
  EXPECT_EQ(places(gathered(SurestErrors(0))), Places{});
}

TEST(SurestErrors, OneOutputIsTheProbabilityOfTheSecondClass) {
  SurestErrors errors(5);
  errors.add(Places{0, 1, 2}, std::vector<std::int32_t>{0, 1, 0},
             std::vector<float>{0.75f, 0.25f, 0.5f});
  const auto kept = gathered(errors);
  EXPECT_EQ(kept, (std::vector<WrongPrediction>{{0, 0, 1, 0.75f, 0.25f}, {1, 1, 0, 0.75f, 0.25f}}));
}

TEST(SurestErrors, AreTheSameAtAnyNumberOfRanks) {
  constexpr std::size_t kImages = 23;
  const auto outputs_of = [](std::uint64_t i) {
    const float p = 0.5f + 0.01f * static_cast<float>(i * 7 % 23);
    return std::vector<float>{p, 1 - p};
  };
  for (const int ranks : {1, 2, 5}) {
    std::vector<std::vector<WrongPrediction>> kept(static_cast<std::size_t>(ranks));
    threads::run_ranks(ranks, [&](comm::Communicator& c) {
      SurestErrors errors(4);
      const data::BatchPlan plan(kImages, 3 * static_cast<std::size_t>(ranks), 3, c.rank(), ranks);
      for (const std::uint64_t i : evaluation_order(plan))
        errors.add(Places{i}, std::vector<std::int32_t>{1}, outputs_of(i));
      kept[static_cast<std::size_t>(c.rank())] = errors.gather(c);
    });
    for (const auto& mine : kept) {  // 7 i mod 23 is 22, 21, 20, 19
      EXPECT_EQ(places(mine), (Places{13, 3, 16, 6})) << ranks;
    }
  }
}

}  // namespace
}  // namespace cputrain::loop
