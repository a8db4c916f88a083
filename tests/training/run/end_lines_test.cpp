#include "training/lines/end_lines.h"

#include <gtest/gtest.h>

namespace cputrain::training {
namespace {

using Lines = std::vector<std::string>;

loop::TrainResult seven_epochs() {
  loop::TrainResult result{.epochs = 7, .best = {.loss = 0.25, .epoch = 3}};
  result.last = logging::EpochRecord{.epoch = 7};
  return result;
}

constexpr logging::ProgramSeconds kSeconds{
    .all = 83.2, .start_up = 2.1, .training = 71.5, .evaluation = 8.0};
const std::string kProgram =
    "Program: 83.2 s (start-up 2.1, training 71.5, evaluation 8.0, other 1.6)";

TEST(EndLines, NameTheBestEpochAndWhatKeepsIt) {
  const loop::TrainResult result = seven_epochs();
  EXPECT_EQ(
      end_lines({.result = result, .folder = "r", .best_accuracy = 0.91, .program = kSeconds}),
      (Lines{"Best epoch: 3 of 7 (val_loss 0.2500, val_accuracy 0.9100)",
             "Weights: r/weights.safetensors (of the last step; --save-best keeps the best "
             "epoch's, too)",
             "Run folder: r", kProgram}));
}

TEST(EndLines, SayWhatWasLost) {
  const loop::TrainResult result = seven_epochs();
  const Lines lines = end_lines(
      {.result = result, .folder = "r", .program = kSeconds, .lost = "checkpoints 3.1 s"});
  EXPECT_EQ(lines.at(lines.size() - 2), "Lost: checkpoints 3.1 s");
}

TEST(EndLines, SayWhichWeightsWereKept) {
  loop::TrainResult result = seven_epochs();
  RunEnd end{
      .result = result, .folder = "r", .keeps_best = true, .kept_best = true, .program = kSeconds};
  EXPECT_EQ(end_lines(end),
            (Lines{"Best epoch: 3 of 7 (val_loss 0.2500)",
                   "Weights: r/weights.safetensors (of the last step)",
                   "Best weights: r/best.safetensors (of epoch 3)", "Run folder: r", kProgram}));
  result.last->epoch = 3;
  EXPECT_EQ(end_lines(end)[1],
            "Weights: r/weights.safetensors (of the last step, in the best epoch)");
  result.last->epoch = 7;
  result.early_stopped = true;
  EXPECT_EQ(end_lines(end)[0],
            "Best epoch: 3 of 7 (val_loss 0.2500); early stopping ended the training");
  EXPECT_EQ(end_lines(end)[1], "Weights: r/weights.safetensors (of epoch 3, the best)");
  end.kept_best = false;  // they could not be written: the last ones are there
  EXPECT_EQ(end_lines(end)[1], "Weights: r/weights.safetensors (of the last step)");
  EXPECT_EQ(end_lines(end).size(), 4u);
}

TEST(EndLines, WithoutAnEvaluationThereIsNoBest) {
  const loop::TrainResult result{.epochs = 2};
  EXPECT_EQ(
      end_lines({.result = result, .folder = "r", .target = 0.9, .program = kSeconds}),
      (Lines{"Target accuracy 0.9: not reached in 2 epochs",
             "Weights: r/weights.safetensors (of the last step)", "Run folder: r", kProgram}));
  EXPECT_EQ(end_lines({.result = result, .folder = "r", .keeps_best = true})[1],
            "Best weights: none, no epoch was evaluated");
}

}  // namespace
}  // namespace cputrain::training
