#include <gtest/gtest.h>

#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

/// Losses of validation that fall and rise.
MadeOptions restless(int epochs) {
  MadeOptions options = summed_by({});
  options.rate.base = 0.02;
  options.train.epochs = epochs;
  return options;
}

/// keras.callbacks.EarlyStopping(monitor="val_loss", patience, min_delta), line by line as its
/// on_epoch_end() has it, beside ModelCheckpoint(monitor="val_loss", save_best_only=True).
struct KerasCallbacks {
  int patience;
  double min_delta;
  double best = std::numeric_limits<double>::infinity();
  int wait = 0, stopped_epoch = -1;
  double saved_loss = std::numeric_limits<double>::infinity();
  std::vector<int> saved{};

  bool on_epoch_end(int epoch, double current) {
    if (current < saved_loss) {
      saved_loss = current;
      saved.push_back(epoch);
    }
    ++wait;
    if (current + min_delta < best) {
      best = current;
      wait = 0;
      return false;
    }
    if (wait >= patience && epoch > 0) stopped_epoch = epoch;
    return stopped_epoch >= 0;
  }
};

TEST(EarlyStopping, EndsAndKeepsTheBestWhereKerasDoes) {
  constexpr int kEpochs = 12;
  const MadeResult whole = train_ranks(1, restless(kEpochs)).at(0);
  std::size_t ended = 0, apart = 0;
  for (const int patience : {0, 1, 3, 20}) {
    for (const double min_delta : {0.0, 0.003, 10.0}) {
      SCOPED_TRACE(::testing::Message() << patience << ":" << min_delta);
      KerasCallbacks keras{patience, min_delta};
      int epochs = 0;
      while (epochs < kEpochs) {
        const double loss =
            whole.recorder.epochs[static_cast<std::size_t>(epochs)].validation->mean_loss();
        if (keras.on_epoch_end(epochs++, loss)) break;
      }
      MadeOptions options = restless(kEpochs);
      options.train.patience = patience;
      options.train.min_delta = min_delta;
      const MadeResult made = train_ranks(1, options).at(0);
      EXPECT_EQ(made.result.progress.epochs, epochs);
      EXPECT_EQ(made.result.early_stopped, keras.stopped_epoch >= 0);
      EXPECT_EQ(made.result.progress.best.epoch, keras.saved.back() + 1);
      EXPECT_EQ(made.result.progress.best.loss, keras.saved_loss);
      std::vector<int> told;
      for (const Progress& best : made.control.best) told.push_back(best.epochs - 1);
      EXPECT_EQ(told, keras.saved);
      ended += made.result.early_stopped;
      apart += keras.saved_loss < keras.best;
    }
  }
  EXPECT_GT(ended, 3u);  // or the losses were not restless
  EXPECT_LT(ended, 12u);
  EXPECT_GT(apart, 3u);  // lower, but not by min_delta
}

/// The same callbacks with monitor="val_accuracy" (mode "max"), but that of equal accuracies the
/// one with the lower loss is kept.
struct KerasByAccuracy {
  int patience;
  double min_delta;
  double best = -std::numeric_limits<double>::infinity();
  int wait = 0;
  bool stopped = false;
  double saved = best, saved_loss = 0;
  int saved_epoch = 0, ties = 0;

  void on_epoch_end(int epoch, double current, double loss) {
    const bool tie = current == saved && loss < saved_loss;
    if (current > saved || tie) {
      ties += tie;
      saved = current;
      saved_loss = loss;
      saved_epoch = epoch;
    }
    ++wait;
    if (current - min_delta > best) {
      best = current;
      wait = 0;
    } else {
      stopped = wait >= patience && epoch > 1;
    }
  }
};

TEST(EarlyStopping, FollowsTheAccuracyWhereThatIsAskedFor) {
  constexpr int kEpochs = 12;
  MadeOptions options = restless(kEpochs);
  options.rate.base = 0.005;  // at more than this all images are of one class soon
  options.validation = 20;
  options.train.monitor = optim::Monitor::accuracy;
  const MadeResult whole = train_ranks(1, options).at(0);
  int ended = 0, ties = 0, apart = 0;
  for (const int patience : {1, 3, 20}) {
    for (const double min_delta : {0.0, 0.07, 1.0}) {
      SCOPED_TRACE(::testing::Message() << patience << ":" << min_delta);
      KerasByAccuracy keras{patience, min_delta};
      int epochs = 0, lowest = 0;
      double least = std::numeric_limits<double>::infinity();
      while (epochs < kEpochs && !keras.stopped) {
        const compute::Tally& seen =
            *whole.recorder.epochs[static_cast<std::size_t>(epochs++)].validation;
        keras.on_epoch_end(epochs, *seen.accuracy(), seen.mean_loss());
        if (seen.mean_loss() < least) least = seen.mean_loss(), lowest = epochs;
      }
      options.train.patience = patience;
      options.train.min_delta = min_delta;
      for (const auto& [rank, made] : train_ranks(2, options)) {  // they decide alike
        EXPECT_EQ(made.result.progress.epochs, epochs);
        EXPECT_EQ(made.result.early_stopped, keras.stopped);
        EXPECT_EQ(made.result.progress.best.epoch, keras.saved_epoch);
        EXPECT_EQ(made.result.progress.best.accuracy, keras.saved);
        EXPECT_EQ(made.control.best.back().epochs, keras.saved_epoch);
      }
      ended += keras.stopped;
      ties += keras.ties;
      apart += lowest != keras.saved_epoch;
    }
  }
  EXPECT_GT(ended, 2);  // or the accuracies show nothing
  EXPECT_GT(ties, 0);
  EXPECT_GT(apart, 0);
}

TEST(EarlyStopping, GoesOnWithTheBestAccuracyAfterAResume) {
  MadeOptions options = restless(8);
  options.rate.base = 0.005;
  options.validation = 20;
  options.train.monitor = optim::Monitor::accuracy;
  options.train.patience = 20;
  options.rate.schedule = optim::Plateau{.patience = 1, .factor = 0.5};
  options.due = [](const Progress& progress) { return progress.steps == 22; };
  const MadeResult whole = train_ranks(1, options).at(0);
  options.start = &whole.control.taken.at(0);
  const MadeResult rest = train_ranks(1, options).at(0);
  const Progress &there = whole.result.progress, &here = rest.result.progress;
  EXPECT_EQ(here.best.epoch, there.best.epoch);
  EXPECT_EQ(here.best.accuracy, there.best.accuracy);
  EXPECT_EQ(here.patience.waited, there.patience.waited);
  EXPECT_EQ(here.plateau.factor, there.plateau.factor);
  EXPECT_EQ(here.plateau.best_accuracy, there.plateau.best_accuracy);
}

TEST(Plateau, IsReportedWhereItChangesTheRate) {
  MadeOptions options = restless(12);
  options.rate.schedule = optim::Plateau{.patience = 1, .factor = 0.5};
  const MadeResult made = train_ranks(1, options).at(0);
  std::vector<std::pair<int, double>> changes;
  const auto& epochs = made.recorder.epochs;
  for (std::size_t i = 1; i < epochs.size(); ++i) {
    if (epochs[i].learning_rate == epochs[i - 1].learning_rate) continue;
    changes.emplace_back(epochs[i].epoch, epochs[i].learning_rate);
  }
  EXPECT_EQ(made.recorder.rates, changes);
  EXPECT_GT(changes.size(), 0u);
  // After the last epoch none follows.
  options.rate.base = 1e-9;  // with which no loss falls by enough
  options.train.epochs = 2;
  const MadeResult still = train_ranks(1, options).at(0);
  EXPECT_EQ(still.result.progress.plateau.factor, 0.5);
  EXPECT_TRUE(still.recorder.rates.empty());
  // Half of 0 is 0.
  options.rate.base = 0;
  options.train.epochs = 3;
  EXPECT_TRUE(train_ranks(1, options).at(0).recorder.rates.empty());
}

TEST(EarlyStopping, GoesOnWaitingAfterAResume) {
  MadeOptions options = restless(6);
  options.train.patience = 3;
  options.train.min_delta = 10;
  options.due = [](const Progress& progress) { return progress.steps == 10; };
  const auto whole = train_ranks(2, options);
  EXPECT_EQ(whole.at(0).result.progress.epochs, 4);
  const auto rest = train_ranks(2, [&](int rank) {
    MadeOptions own = options;
    own.start = &whole.at(rank).control.taken.at(0);
    return own;
  });
  for (const auto& [rank, made] : rest) {
    EXPECT_EQ(made.result.progress.epochs, 4);
    EXPECT_TRUE(made.result.early_stopped);
    EXPECT_EQ(made.result.progress.best.epoch, whole.at(0).result.progress.best.epoch);
    for (const Progress& best : made.control.best) EXPECT_GT(best.epochs, 2);
  }
}

/// Where nothing is learnt, every epoch is as good as the first, which stays the best.
TEST(EarlyStopping, OfEqualEpochsTheFirstIsTheBest) {
  for (const auto monitor : {optim::Monitor::loss, optim::Monitor::accuracy}) {
    MadeOptions options = restless(3);
    options.rate.base = 0;
    options.train.monitor = monitor;
    EXPECT_EQ(train_ranks(1, options).at(0).result.progress.best.epoch, 1);
  }
}

TEST(TrainingEnd, IsAtTenTimesTheStepsWhereNoneSettles) {
  const TrainingEnd end{.epochs = 1, .steps = 3, .settled_steps = 2};
  EXPECT_FALSE(steps_are_made(end, {.steps = 29, .settled_steps = 1}));
  EXPECT_TRUE(steps_are_made(end, {.steps = 30, .settled_steps = 1}));
  EXPECT_TRUE(steps_are_made(end, {.steps = 3, .settled_steps = 2}));
  EXPECT_FALSE(steps_are_made(end, {.steps = 2, .settled_steps = 2}));
}

TEST(EarlyStopping, NobodyIsToldOfBestWeightsUnlessAsked) {
  EXPECT_TRUE(train_ranks(1, restless(2)).at(0).control.best.empty());
  MadeOptions options = restless(2);
  options.train.tracks_best = true;
  EXPECT_FALSE(train_ranks(1, options).at(0).control.best.empty());
  EXPECT_FALSE(train_ranks(1, options).at(0).result.early_stopped);
}

}  // namespace
}  // namespace cputrain::loop
