#include "train/trainer.h"

#include <gtest/gtest.h>

#include "backends/threads/threads_communicator.h"
#include "comm/solo.h"
#include "core/error.h"
#include "train/made_training.h"

namespace cputrain {
namespace {

MadeResult made_alone(const MadeOptions& options) { return train_made(*make_solo(), options); }

TEST(Trainer, RunsTheEpochsAndCountsEverything) {
  const MadeResult made = made_alone({});
  EXPECT_EQ(made.result.epochs, 2);
  EXPECT_EQ(made.result.steps, 10u);
  EXPECT_FALSE(made.result.stopped);
  ASSERT_EQ(made.recorder.starts.size(), 2u);
  EXPECT_EQ(made.recorder.starts[1].epoch, 2);
  EXPECT_EQ(made.recorder.starts[0].steps, 5u);
  EXPECT_EQ(made.recorder.steps[6].step, 7u);
  EXPECT_EQ(made.recorder.steps[6].step_in_epoch, 2u);
  EXPECT_EQ(made.recorder.steps[4].tally.images, 2);  // 22 = 4 x 5 + 2
}

TEST(Trainer, LearnsTheMadePictures) {
  MadeOptions options;
  options.samples = 60;
  options.train.epochs = 60;
  const MadeResult made = made_alone(options);
  EXPECT_LT(made.recorder.epochs.back().train.mean_loss(),
            0.8 * made.recorder.epochs.front().train.mean_loss());
}

TEST(Trainer, TheBudgetAddsUp) {
  for (const EpochRecord& epoch : made_alone({}).recorder.epochs) {
    EXPECT_NEAR(epoch.budget.known() + epoch.budget.other, epoch.seconds, 1e-9);
    EXPECT_GE(epoch.budget.other, 0);
    EXPECT_GT(epoch.budget.forward, 0);
    EXPECT_GT(epoch.budget.backward, 0);
  }
}

TEST(Trainer, StepsEndItWhateverTheEpochsSay) {
  MadeOptions options;
  options.train.steps = 7;
  options.train.epochs = 1;
  const MadeResult made = made_alone(options);
  EXPECT_EQ(made.result.steps, 7u);
  EXPECT_EQ(made.result.epochs, 2);
  ASSERT_EQ(made.recorder.epochs.size(), 2u);
  EXPECT_EQ(made.recorder.epochs[1].steps, 2u);
  EXPECT_EQ(made.recorder.epochs[1].train.images, 10);
  EXPECT_TRUE(made.recorder.epochs[1].validation.has_value());
}

// One rank is asked; all of them stop after the same step and none evaluates.
TEST(Trainer, ARequestStopsAllRanksAfterTheSameStep) {
  run_ranks(3, [](Communicator& communicator) {
    int asked = 0;
    MadeOptions options;
    options.stop = [&] { return communicator.rank() == 2 && ++asked == 3; };
    const MadeResult made = train_made(communicator, options);
    EXPECT_TRUE(made.result.stopped);
    EXPECT_EQ(made.result.steps, 3u);
    EXPECT_FALSE(made.result.last->validation.has_value());
  });
}

TEST(Trainer, EndsWhenTheLossIsNoNumber) {
  MadeOptions options;
  options.optimizer.rule = Sgd{};
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

TEST(Trainer, TheSameSeedGivesTheSameWeights) {
  MadeOptions options;
  const std::string hash = made_alone(options).weights_hash;
  EXPECT_EQ(made_alone(options).weights_hash, hash);
  options.train.seed = 4;
  EXPECT_NE(made_alone(options).weights_hash, hash);
}

}  // namespace
}  // namespace cputrain
