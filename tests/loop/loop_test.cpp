#include "loop/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "loop/loop_details.h"
#include "loop/records.h"
#include "tests/loop/made_training.h"
#include "tests/support/locked_backend.h"

namespace cputrain::loop {
namespace {

MadeResult made_alone(const MadeOptions& options) {
  return train_made(*comm::make_solo(), options);
}

TEST(Loop, RunsTheEpochsAndCountsEverything) {
  const MadeResult made = made_alone({});
  EXPECT_EQ(made.result.progress.epochs, 2);
  EXPECT_EQ(made.result.progress.steps, 10u);
  EXPECT_FALSE(made.result.stopped);
  ASSERT_EQ(made.recorder.starts.size(), 2u);
  EXPECT_EQ(made.recorder.starts[1].epoch, 2);
  EXPECT_EQ(made.recorder.starts[0].steps, 5u);
  EXPECT_EQ(made.recorder.steps[6].step, 7u);
  EXPECT_EQ(made.recorder.steps[6].step_in_epoch, 2u);
  EXPECT_FALSE(made.recorder.steps[6].ends_epoch);
  EXPECT_TRUE(made.recorder.steps[4].ends_epoch);
  EXPECT_EQ(made.recorder.steps[4].tally.images, 2);  // 22 = 4 x 5 + 2
}

TEST(Loop, TriesAlgorithmsAgainEverMoreRarely) {
  std::vector<int> epochs;
  for (int epoch = 1; epoch <= 40; ++epoch) {
    if (tries_again(epoch)) epochs.push_back(epoch);
  }
  EXPECT_EQ(epochs, (std::vector<int>{2, 3, 5, 9, 17, 33}));
}

TEST(Loop, LearnsTheMadeImages) {
  MadeOptions options;
  options.samples = 60;
  options.train.epochs = 60;
  const MadeResult made = made_alone(options);
  EXPECT_LT(made.recorder.epochs.back().train.mean_loss(),
            0.8 * made.recorder.epochs.front().train.mean_loss());
}

TEST(Loop, TheBudgetAddsUp) {
  for (const EpochRecord& epoch : made_alone({}).recorder.epochs) {
    EXPECT_NEAR(epoch.budget.known() + epoch.budget.other, epoch.seconds, 1e-9);
    EXPECT_GE(epoch.budget.other, 0);
    EXPECT_GT(epoch.budget.forward, 0);
    EXPECT_GT(epoch.budget.backward, 0);
  }
}

/// A rank that was stopped while it computed has not waited less than nothing for the others.
TEST(EpochMeter, TakesStoppedSecondsOffWhatWasWaitedForAndNoMore) {
  threads::run_ranks(2, [](comm::Communicator& communicator) {
    double stopped = 0;
    LoopOptions options;
    options.stopped_seconds = [&] { return stopped; };
    EpochMeter meter(options);
    const bool first = communicator.rank() == 0;
    for (const double waited : {first ? 1.0 : 2.0, first ? 3.0 : 0.25}) {
      meter.begin_step();
      if (first && waited == 1) stopped = 5;
      meter.end_step(waited);
    }
    EpochRecord record;
    meter.finish(record, communicator);
    ASSERT_TRUE(record.straggler);
    EXPECT_EQ(record.straggler->rank, 1);
    EXPECT_EQ(record.straggler->seconds, 0.75);
  });
}

TEST(Loop, StepsEndItWhateverTheEpochsSay) {
  MadeOptions options;
  options.train.steps = 7;
  options.train.epochs = 1;
  const MadeResult made = made_alone(options);
  EXPECT_EQ(made.result.progress.steps, 7u);
  EXPECT_EQ(made.result.progress.epochs, 2);
  ASSERT_EQ(made.recorder.epochs.size(), 2u);
  EXPECT_EQ(made.recorder.epochs[1].steps, 2u);
  EXPECT_EQ(made.recorder.epochs[1].train.images, 10);
  EXPECT_TRUE(made.recorder.epochs[1].validation.has_value());
}

// One rank is asked; all of them stop after the same step and none evaluates.
TEST(Loop, ARequestStopsAllRanksAfterTheSameStep) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    int asked = 0;
    MadeOptions options;
    options.stop = [&] { return communicator.rank() == 2 && ++asked == 3; };
    const MadeResult made = train_made(communicator, options);
    EXPECT_TRUE(made.result.stopped);
    EXPECT_EQ(made.result.progress.steps, 3u);
    EXPECT_FALSE(made.result.last->validation.has_value());
  });
}

/// A device sends probabilities with passes that say so, and no others.
TEST(Loop, AnswersOfMoreThanFiveClassesAreRanked) {
  MadeOptions options;
  options.locked = true;
  options.classes = 7;
  for (const EpochRecord& epoch : made_alone(options).recorder.epochs) {
    EXPECT_EQ(epoch.train.ranked, 22);
    EXPECT_EQ(epoch.validation->ranked, 5);
  }
}

TEST(Loop, EndsWhenTheLossIsNaN) {
  MadeOptions options;
  options.optimizer.rule = optim::Sgd{};
  options.rate.base = 1e300;
  try {
    made_alone(options);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_NE(std::string(error.what()).find("Invalid loss, terminating training"),
              std::string::npos);
  }
}

/// A single step from good weights, whose loss is a number, to weights whose predictions mean
/// nothing.
MadeOptions step_into_the_void() {
  MadeOptions options;
  options.batch = options.samples;
  options.optimizer.rule = optim::Sgd{};
  options.rate.base = 1e300;
  options.train.epochs = 5;
  options.train.target_accuracy = 0;
  return options;
}

void expect_end(const std::function<void()>& act, const std::string& word) {
  try {
    act();
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

// A target of 0 is reached by any accuracy, but not by none.
TEST(Loop, AllRanksEndAtAValidationLossThatIsNaN) {
  for (const int ranks : {1, 3}) {
    threads::run_ranks(ranks, [](comm::Communicator& communicator) {
      MadeOptions options = step_into_the_void();
      Recorder recorder;
      options.recorder = &recorder;
      expect_end([&] { train_made(communicator, options); },
                 "Epoch 1: Invalid validation loss, terminating training");
      ASSERT_EQ(recorder.epochs.size(), 1u);
      EXPECT_TRUE(recorder.epochs[0].train.is_number());
      EXPECT_FALSE(recorder.epochs[0].validation->accuracy());
      EXPECT_EQ(recorder.epochs[0].validation->correct, 0);
      communicator.barrier();  // nobody lets go of weights that others read
    });
  }
}

TEST(Loop, AllRanksEndAtWeightsOfOneThatAreNaN) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    std::vector<float> weights(100, 1.0f);
    check_weights(communicator, compute::host_memory(), Array::of<float>(weights));
    if (communicator.rank() == 2) weights[99] = -HUGE_VALF;
    expect_end(
        [&] { check_weights(communicator, compute::host_memory(), Array::of<float>(weights)); },
        "Invalid weights");
    testing::LockedMemory locked;
    const compute::OwnedArray array(locked, weights.size(), DType::f32);
    locked.write(std::as_bytes(std::span<const float>(weights)), array.array().data);
    expect_end([&] { check_weights(communicator, locked, array.array()); }, "Invalid weights");
    std::vector<double> doubles{1e-320, -1e308, communicator.rank() == 0 ? std::nan("") : 0};
    expect_end(
        [&] { check_weights(communicator, compute::host_memory(), Array::of<double>(doubles)); },
        "Invalid weights");
  });
}

TEST(Loop, SeesNumbersThatTheHostCannotTouch) {
  MadeOptions options;
  options.locked = true;
  EXPECT_EQ(made_alone(options).weights_hash, made_alone({}).weights_hash);
}

TEST(Loop, TellsTheRateOfEachStep) {
  MadeOptions options;
  options.rate = {.base = 0.01, .warmup_epochs = 1, .schedule = optim::StepDecay{1, 0.1}};
  const MadeResult made = made_alone(options);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(made.recorder.steps[i].learning_rate, 0.01 * (i + 1.0) / 5, 1e-15);
    EXPECT_NEAR(made.recorder.steps[5 + i].learning_rate, 0.001, 1e-15);
  }
  EXPECT_EQ(made.recorder.epochs[0].learning_rate, made.recorder.steps[4].learning_rate);
}

TEST(Loop, GrowsTheBatch) {
  MadeOptions options;
  options.plan.growth = {{1, 2}, {2, 100}};
  options.train.epochs = 4;
  const MadeResult made = made_alone(options);
  ASSERT_EQ(made.result.progress.steps, 5u + 3 + 1 + 1);
  EXPECT_EQ(made.recorder.starts[1].steps, 3u);
  EXPECT_EQ(made.recorder.steps[5].tally.images, 10);
  EXPECT_EQ(made.recorder.steps[8].tally.images, 22);
}

TEST(Loop, PlateauWatchesTheValidation) {
  MadeOptions options;
  options.rate = {.base = 0,
                  .schedule = optim::Plateau{1, 0.5}};  // nothing is learnt, nothing improves
  options.rate.base = 1e-12;
  options.train.epochs = 4;
  const MadeResult made = made_alone(options);
  for (std::size_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_NEAR(made.recorder.epochs[epoch].learning_rate,
                1e-12 * std::pow(0.5, epoch < 2 ? 0 : epoch - 1), 1e-20);
  }
}

/// Its losses of training do not fall, either.
TEST(Loop, APlateauWithoutValidationStays) {
  MadeOptions options;
  options.rate = {.base = 1e-12, .schedule = optim::Plateau{1, 0.5}};
  options.train.epochs = 4;
  options.validation = 0;
  for (const auto& epoch : made_alone(options).recorder.epochs) {
    EXPECT_EQ(epoch.learning_rate, 1e-12);
  }
}

TEST(Loop, EndsAtTheTargetAccuracy) {
  MadeOptions options;
  options.train.epochs = 50;
  options.train.target_accuracy = 0;
  const MadeResult made = made_alone(options);
  EXPECT_EQ(made.result.progress.epochs, 1);
  ASSERT_TRUE(made.result.progress.reached);
  EXPECT_EQ(made.result.progress.reached->epoch, 1);
  EXPECT_EQ(made.result.progress.reached->accuracy, made.recorder.epochs[0].validation->accuracy());
  EXPECT_EQ(made.result.progress.reached->seconds, made.recorder.epochs[0].seconds);
  EXPECT_EQ(made.result.progress.training_seconds, made.recorder.epochs[0].seconds);

  options.train.epochs = 2;
  options.rate.base = 0;
  options.train.target_accuracy = 1;
  EXPECT_FALSE(made_alone(options).result.progress.reached);
}

// Without a step nothing changes, so the printed losses differ by l2 * sum of squares exactly.
TEST(Loop, PrintsTheL2PenaltyWithTheLoss) {
  MadeOptions options;
  options.rate.base = 0;
  options.optimizer.rule = optim::Sgd{};
  const MadeResult plain = made_alone(options);
  const auto penalty = [&](float l2) {
    options.l2 = l2;
    const MadeResult made = made_alone(options);
    const double train =
        made.recorder.steps[3].tally.mean_loss() - plain.recorder.steps[3].tally.mean_loss();
    const EpochRecord &epoch = made.recorder.epochs[1], &without = plain.recorder.epochs[1];
    EXPECT_NEAR(epoch.train.mean_loss() - without.train.mean_loss(), train, 1e-12);
    EXPECT_NEAR(epoch.validation->mean_loss() - without.validation->mean_loss(), train, 1e-12);
    EXPECT_EQ(epoch.validation->correct, without.validation->correct);
    return train;
  };
  // Glorot's uniform values of a 36 x 8 kernel have variance 2 / (36 + 8).
  EXPECT_NEAR(penalty(0.5f), 0.5 * 36 * 8 * 2.0 / 44, 0.15 * 0.5 * 36 * 8 * 2.0 / 44);
  EXPECT_NEAR(penalty(0.25f) / penalty(0.5f), 0.5, 1e-12);
  // As in Keras, what does not learn is not in it.
  options.frozen = true;
  EXPECT_NEAR(penalty(0.5f), 0, 1e-12);
}

// One step of plain SGD: the penalty's gradient takes 2 * l2 * rate of every weight off.
TEST(Loop, TheL2PenaltyShrinksTheWeights) {
  MadeOptions options;
  options.optimizer.rule = optim::Sgd{};
  options.rate.base = 0.5;
  options.batch = 22;
  options.train.epochs = 30;
  const auto penalty_of_last = [&](float l2) {
    options.l2 = l2;
    const MadeResult made = made_alone(options);
    options.l2 = 0;
    return made.recorder.epochs.back().train.mean_loss();
  };
  EXPECT_LT(penalty_of_last(0.2f), 1.0);  // began above 2.5; each step multiplies its root by 0.8
}

TEST(Loop, TheSameSeedGivesTheSameWeights) {
  MadeOptions options;
  const std::string hash = made_alone(options).weights_hash;
  EXPECT_EQ(made_alone(options).weights_hash, hash);
  options.train.seed = 4;
  EXPECT_NE(made_alone(options).weights_hash, hash);
}

}  // namespace
}  // namespace cputrain::loop
