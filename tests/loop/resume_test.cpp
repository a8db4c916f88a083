// A training that goes on from between two of its steps is the one that was never stopped.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

bool always(const Progress&) { return true; }

/// What has something of its own between two steps, by what that is.
std::map<std::string, MadeOptions> resumable() {
  std::map<std::string, MadeOptions> list;
  list["squares"] = summed_by({});
  MadeOptions statistics;
  statistics.batch_norm = true;
  statistics.synchronised = false;
  statistics.micro_batch = 22;
  statistics.optimizer.ema = 0.7;
  list["each rank's statistics"] = summed_by(statistics);
  MadeOptions unsent;
  unsent.compression = exchange::parse_compression("topk:0.3");
  unsent.bucket_bytes = 20000;
  list["unsent gradients"] = summed_by(unsent, "ring");
  for (const char* name :
       {"LAMB with a growing batch", "strided, momentum corrected", "L2 and a plateau"}) {
    list[name] = summed_by(made_recipes().at(name));
  }
  return list;
}

using Ranks = std::map<int, MadeResult>;

Ranks go_on(int ranks, const MadeOptions& options,
            const std::function<const MadeState*(int rank)>& start) {
  return train_ranks(ranks, [&](int rank) {
    MadeOptions own = options;
    own.start = start(rank);
    return own;
  });
}

/// The end of one is the other: every step from there on once, and every epoch as a whole.
void expect_rest(const MadeResult& whole, const MadeResult& rest, const Progress& start) {
  const auto& steps = whole.recorder.steps;
  ASSERT_EQ(rest.recorder.steps.size(), steps.size() - start.steps);
  for (std::size_t i = 0; i < rest.recorder.steps.size(); ++i) {
    const StepRecord &expected = steps[start.steps + i], &actual = rest.recorder.steps[i];
    EXPECT_EQ(actual.step, expected.step);
    EXPECT_EQ(actual.step_in_epoch, expected.step_in_epoch);
    EXPECT_EQ(actual.tally.loss, expected.tally.loss);
    EXPECT_EQ(actual.epoch_tally.loss, expected.epoch_tally.loss);
    EXPECT_EQ(actual.epoch_tally.images, expected.epoch_tally.images);
    EXPECT_EQ(actual.learning_rate, expected.learning_rate);
  }
  const auto& epochs = whole.recorder.epochs;
  ASSERT_EQ(rest.recorder.epochs.size(), epochs.size() - static_cast<std::size_t>(start.epochs));
  for (std::size_t i = 0; i < rest.recorder.epochs.size(); ++i) {
    const EpochRecord &expected = epochs[static_cast<std::size_t>(start.epochs) + i],
                      &actual = rest.recorder.epochs[i];
    EXPECT_EQ(actual.epoch, expected.epoch);
    EXPECT_EQ(actual.steps, expected.steps);
    EXPECT_EQ(actual.train.loss, expected.train.loss);
    EXPECT_EQ(actual.train.correct, expected.train.correct);
    EXPECT_EQ(actual.train.images, expected.train.images);
    EXPECT_EQ(actual.learning_rate, expected.learning_rate);
    EXPECT_EQ(actual.validation->loss, expected.validation->loss);
    ASSERT_EQ(actual.averaged.has_value(), expected.averaged.has_value());
    if (expected.averaged) {
      EXPECT_EQ(actual.averaged->loss, expected.averaged->loss);
    }
    EXPECT_NEAR(actual.budget.known() + actual.budget.other, actual.seconds, 1e-9);
  }
  EXPECT_EQ(rest.weights, whole.weights);
  EXPECT_EQ(rest.result.progress.steps, whole.result.progress.steps);
  EXPECT_EQ(rest.result.progress.epochs, whole.result.progress.epochs);
  EXPECT_EQ(rest.result.progress.settled_steps, whole.result.progress.settled_steps);
  EXPECT_EQ(rest.result.progress.best.epoch, whole.result.progress.best.epoch);
  EXPECT_EQ(rest.result.progress.best.loss, whole.result.progress.best.loss);
  EXPECT_GE(rest.result.progress.training_seconds, start.training_seconds);
}

class Resume : public ::testing::TestWithParam<int> {};

TEST_P(Resume, FromEveryCheckpointIsTheTrainingThatWasNotStopped) {
  for (auto& [name, options] : resumable()) {
    SCOPED_TRACE(name);
    const Ranks undisturbed = train_ranks(GetParam(), options);
    options.due = always;
    const Ranks whole = train_ranks(GetParam(), options);
    options.due = nullptr;
    for (const auto& [rank, made] : whole) {
      EXPECT_EQ(made.weights, undisturbed.at(rank).weights);  // taking one changes nothing
      EXPECT_EQ(made.control.taken.size(), made.recorder.steps.size());
    }
    const std::size_t count = whole.at(0).control.taken.size();
    for (std::size_t i = 0; i < count; i += 2) {
      const auto state = [&](int rank) { return &whole.at(rank).control.taken[i]; };
      const Progress& start = state(0)->progress;
      SCOPED_TRACE("step " + std::to_string(start.steps));
      for (const auto& [rank, rest] : go_on(GetParam(), options, state)) {
        expect_rest(whole.at(rank), rest, start);
        if (start.begun && !rest.recorder.starts.empty()) {
          EXPECT_EQ(rest.recorder.starts[0].made, start.begun->steps);
        }
      }
    }
  }
}

// Also after an epoch's last step, where only the validation is left, within that, and after it.
TEST_P(Resume, AfterAStopAnywhereIsTheTrainingThatWasNotStopped) {
  MadeOptions options = resumable().at("each rank's statistics");
  const Ranks whole = train_ranks(GetParam(), options);
  // In an epoch: after each of five steps, before each batch of the validation, of weights and of
  // averages, after it.
  const int batches = (5 + 2 * GetParam() - 1) / (2 * GetParam());
  const int asked_an_epoch = 5 + 2 * batches + 1;
  for (int when = 1; when <= 2 * asked_an_epoch; ++when) {
    SCOPED_TRACE("asked " + std::to_string(when) + " times");
    const Ranks stopped = train_ranks(GetParam(), [&](int rank) {
      MadeOptions own = options;
      const bool stops = rank == GetParam() - 1;
      own.stop = [=, asked = 0]() mutable { return ++asked == when && stops; };
      return own;
    });
    const auto state = [&](int rank) { return &stopped.at(rank).control.stopped.at(0); };
    const Progress& start = state(0)->progress;
    const int in_epoch = (when - 1) % asked_an_epoch + 1, epochs = when / asked_an_epoch;
    const bool validated = in_epoch == asked_an_epoch;
    EXPECT_EQ(start.begun.has_value(), !validated);
    EXPECT_EQ(start.epochs, epochs);
    EXPECT_EQ(start.steps,
              static_cast<std::uint64_t>(5 * epochs + (validated ? 0 : std::min(in_epoch, 5))));
    for (const auto& [rank, made] : stopped) {
      EXPECT_TRUE(made.result.stopped);
      EXPECT_EQ(made.control.stopped.size(), 1u);
      EXPECT_TRUE(made.control.ended.empty());
      EXPECT_EQ(made.recorder.epochs.back().validation.has_value(), validated);
    }
    for (const auto& [rank, rest] : go_on(GetParam(), options, state)) {
      expect_rest(whole.at(rank), rest, start);
    }
  }
}

/// When files change, and whose images: the loader has read some of what follows by then, and may
/// have the first micro-batch of the next epoch.
struct Loss {
  const char* name;
  comm::Phase phase;
  std::uint64_t step;
  bool of_validation;
  std::uint64_t least, most;  ///< steps that are whole
};

// A file that changes under a training: whatever was learnt until then is kept, and nothing of it.
TEST_P(Resume, AfterLostInputIsTheTrainingThatLostNone) {
  const std::vector<Loss> losses{{"before all", comm::Phase::input, 0, false, 0, 0},
                                 {"between epochs", comm::Phase::validate, 5, false, 5, 6},
                                 {"in an epoch", comm::Phase::update, 6, false, 6, 9},
                                 {"validation", comm::Phase::update, 6, true, 10, 10}};
  for (const char* recipe :
       {"squares", "each rank's statistics", "unsent gradients", "L2 and a plateau"}) {
    MadeOptions options = resumable().at(recipe);
    // Three micro-batches for each rank, of which the loader cannot have all beforehand.
    options.validation = static_cast<std::size_t>(5 * GetParam());
    const Ranks whole = train_ranks(GetParam(), options);
    for (const Loss& loss : losses) {
      SCOPED_TRACE(std::string(recipe) + ", " + loss.name);
      std::atomic<bool> changed = loss.step == 0;
      MadeOptions reading = options;
      reading.fault = [&](const FaultPlace& place) {
        if (place.phase == loss.phase && place.step == loss.step) changed = true;
      };
      reading.reads = [&](std::uint32_t sample) {
        const bool of_validation = sample >= 1000;
        if (changed && of_validation == loss.of_validation) fail(ExitCode::data, "lost");
      };
      const Ranks stopped = train_ranks(GetParam(), reading);
      for (const auto& [rank, made] : stopped) {
        EXPECT_TRUE(made.result.stopped);
        EXPECT_EQ(made.result.lost_input, "lost");
        EXPECT_GE(made.result.progress.steps, loss.least);
        EXPECT_LE(made.result.progress.steps, loss.most);
        EXPECT_EQ(made.recorder.steps.size(), made.result.progress.steps);
        EXPECT_EQ(made.recorder.epochs.size(), (made.recorder.steps.size() + 4) / 5);
        ASSERT_EQ(made.control.stopped.size(), 1u);
      }
      const auto state = [&](int rank) { return &stopped.at(rank).control.stopped[0]; };
      for (const auto& [rank, rest] : go_on(GetParam(), options, state)) {
        expect_rest(whole.at(rank), rest, state(0)->progress);
      }
    }
  }
}

TEST_P(Resume, ImagesThatAreReadAreThoseInMemory) {
  MadeOptions options = resumable().at("squares");
  const Ranks whole = train_ranks(GetParam(), options);
  options.reads = [](std::uint32_t) {};
  for (const auto& [rank, made] : train_ranks(GetParam(), options)) {
    expect_rest(whole.at(rank), made, {});
    EXPECT_EQ(made.result.lost_input, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Resume, ::testing::Values(1, 2, 3));

TEST(Checkpoints, OfAnEpochsEndComeAfterItsValidation) {
  MadeOptions options;
  std::vector<Progress> asked;
  options.due = [&](const Progress& progress) {
    asked.push_back(progress);
    return true;
  };
  const MadeResult made = train_ranks(1, options).at(0);
  ASSERT_EQ(asked.size(), 10u);  // what is due after a last step needs no other word
  EXPECT_EQ(asked[4].begun->steps, 5u);
  EXPECT_EQ(asked[4].epochs, 0);
  const auto& taken = made.control.taken;
  ASSERT_EQ(taken.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(taken[i].progress.steps, i + 1);
    EXPECT_EQ(taken[i].progress.begun.has_value(), i % 5 != 4);
    EXPECT_EQ(taken[i].progress.epochs, static_cast<int>((i + 1) / 5));
  }
  EXPECT_EQ(taken[4].progress.images, 22u);
  EXPECT_EQ(taken[4].progress.best.loss, made.recorder.epochs[0].validation->mean_loss());
  EXPECT_EQ(taken[4].progress.own_images, 0);
  EXPECT_EQ(taken[3].progress.own_images, 20);
}

TEST(Checkpoints, AreAskedForOnceMoreWhenAnEpochHasEnded) {
  MadeOptions options;
  int asked = 0;
  options.due = [&](const Progress& progress) {
    ++asked;
    return !progress.begun;
  };
  const MadeResult made = train_ranks(1, options).at(0);
  EXPECT_EQ(asked, 12);
  ASSERT_EQ(made.control.taken.size(), 2u);
  EXPECT_EQ(made.control.taken[0].progress.epochs, 1);
}

TEST(Checkpoints, AreThoseThatRankZeroAsksFor) {
  const Ranks made = train_ranks(3, [](int rank) {
    MadeOptions options;
    options.due = [=](const Progress& progress) {
      return rank == 0 ? progress.steps == 7 : progress.steps == 2;
    };
    return options;
  });
  for (const auto& [rank, result] : made) {
    ASSERT_EQ(result.control.taken.size(), 1u);
    EXPECT_EQ(result.control.taken[0].progress.steps, 7u);
  }
}

// A training that --steps ends in the middle of an epoch can be made longer.
TEST(Checkpoints, OfStepsThatEndWithinAnEpochAreOfTheEpochThatIsBegun) {
  MadeOptions options;
  options.train.steps = 7;
  options.due = [](const Progress& progress) { return progress.steps == 7; };
  const MadeResult made = train_ranks(1, options).at(0);
  ASSERT_EQ(made.control.taken.size(), 1u);
  EXPECT_EQ(made.control.taken[0].progress.begun->steps, 2u);
  ASSERT_EQ(made.control.ended.size(), 1u);
  EXPECT_EQ(made.control.ended[0].begun->steps, 2u);
  options.train.steps = 12;
  const MadeResult whole = train_ranks(1, options).at(0);
  options.start = &made.control.taken[0];
  expect_rest(whole, train_ranks(1, options).at(0), options.start->progress);
}

TEST(Checkpoints, SayNothingOfATargetThatWasRaisedSince) {
  MadeOptions options;
  options.due = always;
  MadeState start = train_ranks(1, options).at(0).control.taken.at(1);
  start.progress.reached = {.target = 0.5, .accuracy = 0.625};
  options.start = &start;
  options.stop = [] { return true; };  // within the epoch
  for (const double target : {0.625, 0.75}) {
    options.train.target_accuracy = target;
    const MadeResult made = train_ranks(1, options).at(0);
    EXPECT_EQ(made.control.stopped.at(0).progress.reached.has_value(), target == 0.625);
  }
}

TEST(Checkpoints, OfAFinishedTrainingLeaveNothingToDo) {
  MadeOptions options;
  options.due = always;
  const MadeResult whole = train_ranks(1, options).at(0);
  options.start = &whole.control.taken.back();
  const MadeResult rest = train_ranks(1, options).at(0);
  EXPECT_TRUE(rest.recorder.starts.empty());
  EXPECT_FALSE(rest.result.last);
  EXPECT_FALSE(rest.result.stopped);
  ASSERT_EQ(rest.control.ended.size(), 1u);
  EXPECT_EQ(rest.control.ended[0].epochs, 2);
  expect_rest(whole, rest, options.start->progress);
}

}  // namespace
}  // namespace cputrain::loop
