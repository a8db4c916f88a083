// Averages of weights: their formula, and what is evaluated.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

constexpr double kDecay = 0.7;

MadeOptions averaging(bool batch_norm = false) {
  MadeOptions options;
  options.optimizer = {.rule = optim::Sgd{.momentum = 0.5}, .ema = kDecay};
  options.batch_norm = batch_norm;
  if (batch_norm) options.micro_batch = 5;
  return options;
}

TEST(Averages, MoveTowardsTheWeightsAfterEachStep) {
  MadeOptions options = averaging();
  options.due = [](const Progress&) { return true; };
  const auto taken = train_ranks(1, options).at(0).control.taken;
  ASSERT_GT(taken.size(), 5u);
  for (std::size_t step = 1; step < taken.size(); ++step) {
    if (taken[step].progress.steps != taken[step - 1].progress.steps + 1) continue;
    const std::vector<double>& before = taken[step - 1].state.back();
    const std::vector<double>& after = taken[step].state.back();
    ASSERT_EQ(taken[step].state.size(), 2u) << "momentum, average";
    double moved = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_NEAR(after[i], kDecay * before[i] + (1 - kDecay) * taken[step].weights[i], 1e-12);
      moved += std::abs(after[i] - before[i]);
    }
    EXPECT_GT(moved, 0);
  }
}

/// Statistics are moved once an epoch, as if they had been so behind each of its updates, which a
/// skipped step is not; and once alone where a run goes on from there.
TEST(Averages, OfMovingStatisticsAreAPower) {
  MadeOptions options = averaging(true);
  options.due = [](const Progress&) { return true; };
  options.train.on_nan = NanPolicy::skip;
  options.fault = [](const FaultPlace& place) {
    if (place.phase == comm::Phase::backward && place.step == 2) *place.loss_scale = HUGE_VAL;
  };
  const MadeResult made = train_ranks(1, options).at(0);
  ASSERT_EQ(made.control.taken.size(), 10u);  // 5 steps an epoch, the last at its end
  for (const std::size_t end : {4u, 9u}) {
    const MadeState &before = made.control.taken[end - 4], &after = made.control.taken[end];
    const double kept = std::pow(kDecay, end == 4 ? 4 : 5);
    ASSERT_EQ(after.averaged.size(), 2u) << "mean, variance";
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t array = after.state.size() - 2 + k;
      for (std::size_t i = 0; i < after.averaged[k].size(); ++i) {
        const double now = after.weights[after.averaged[k].begin + i];
        EXPECT_NEAR(after.state[array][i], kept * before.state[array][i] + (1 - kept) * now, 1e-12);
        if (end == 4) {
          EXPECT_EQ(before.state[array][i], k == 0 ? 0 : 1) << "as at the start";
        }
        EXPECT_NE(now, before.weights[after.averaged[k].begin + i]);
      }
    }
  }
  options.start = &made.control.taken[4];
  const MadeResult rest = train_ranks(1, options).at(0);
  EXPECT_EQ(rest.control.taken.back().state, made.control.taken.back().state);
}

TEST(Averages, ChangeNothingElse) {
  for (const bool batch_norm : {false, true}) {
    MadeOptions options = averaging(batch_norm);
    const auto with = train_ranks(2, summed_by(options)).at(0);
    options.optimizer.ema = 0;
    const auto without = train_ranks(2, summed_by(options)).at(0);
    EXPECT_EQ(losses(with), losses(without));
    EXPECT_EQ(with.weights, without.weights);
    EXPECT_FALSE(without.recorder.epochs.back().averaged);
    EXPECT_NE(with.recorder.epochs.back().averaged->loss,
              with.recorder.epochs.back().validation->loss);
  }
}

/// Each rank averages what it owns, and all of them evaluate the whole. With synchronised
/// statistics ranks do what one rank does.
TEST(Averages, AreTheSameHoweverRanksOwnWeights) {
  for (const bool batch_norm : {false, true}) {
    MadeOptions options = averaging(batch_norm);
    const auto alone = train_ranks(1, options).at(0).recorder.epochs;
    for (const char* way : {"shm", "ring", "ps", "locked ring"}) {
      options.locked = std::string(way) == "locked ring";
      for (const auto& [rank, made] :
           train_ranks(3, summed_by(options, options.locked ? "ring" : way))) {
        for (std::size_t epoch = 0; epoch < alone.size(); ++epoch) {
          EXPECT_NEAR(made.recorder.epochs[epoch].averaged->loss, alone[epoch].averaged->loss, 1e-9)
              << way << " " << rank;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::loop
