#include "training/run/run_results.h"

#include <gtest/gtest.h>

namespace cputrain::training {
namespace {

using Lines = std::vector<std::string>;

constexpr runfiles::ProgramSeconds kSeconds{
    .all = 83.2, .start_up = 2.1, .training = 71.5, .evaluation = 8.0};
const std::string kProgram =
    "Program: 83.2 s (start-up 2.1, training 71.5, evaluation 8.0, other 1.6)";

logging::SummaryRecord after_seven_epochs() {
  logging::SummaryRecord summary{.program = kSeconds};
  summary.result.progress.epochs = 7;
  summary.result.progress.best = {.loss = 0.25, .epoch = 3};
  summary.result.last.emplace().epoch = 7;
  return summary;
}

TEST(EndLines, NameTheBestEpoch) {
  logging::SummaryRecord summary = after_seven_epochs();
  summary.best_accuracy = 0.91;
  EXPECT_EQ(
      end_lines({.summary = summary, .folder = "r"}),
      (Lines{"Best epoch: 3 of 7 (val_loss 0.2500, val_accuracy 0.9100)",
             "Weights: r/weights.safetensors (of the last step)", "Run folder: r", kProgram}));
}

TEST(EndLines, SayThatTheAccuracyDecided) {
  logging::SummaryRecord summary = after_seven_epochs();
  summary.result.progress.best.accuracy = 0.91;
  summary.best_accuracy = 0.91;
  EXPECT_EQ(end_lines({.summary = summary, .folder = "r"}).at(0),
            "Best epoch: 3 of 7 by accuracy (val_loss 0.2500, val_accuracy 0.9100)");
}

TEST(EndLines, SayWhatWasLost) {
  const logging::SummaryRecord summary = after_seven_epochs();
  const Lines lines = end_lines({.summary = summary, .folder = "r", .lost = "checkpoints 3.1 s"});
  EXPECT_EQ(lines.at(lines.size() - 2), "Lost: checkpoints 3.1 s");
}

TEST(EndLines, SayWhichWeightsWereKept) {
  logging::SummaryRecord summary = after_seven_epochs();
  loop::TrainResult& result = summary.result;
  RunEnd end{.summary = summary, .folder = "r", .keeps_best = true, .kept_best = true};
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

TEST(EndLines, SayThatTheTrainingLearnedLittle) {
  std::vector<std::int32_t> labels(60, 1);  // one answer is right for two thirds
  std::fill_n(labels.begin(), 20, 0);
  const auto line = [&](const std::vector<double>& accuracies,
                        std::optional<double> averaged = {}) {
    std::vector<runfiles::EpochLine> epochs(accuracies.size());
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      epochs[i].validation = {.loss = 1, .accuracy = accuracies[i]};
      if (averaged) epochs[i].averaged = {.loss = 1, .accuracy = averaged};
    }
    return learned_little(epochs, labels);
  };
  const std::string text = line({0.5, 40.0 / 60, 0.4});
  EXPECT_NE(text.find("is 0.6667, and one answer for all images has 0.6667"), std::string::npos)
      << text;
  EXPECT_FALSE(line({0.0}).empty());
  EXPECT_EQ(line({0.5, 41.0 / 60, 0.5}), "");  // any epoch counts
  EXPECT_EQ(line({0.5}, 41.0 / 60), "");       // and averages of weights
  EXPECT_EQ(line({}), "");                     // none was evaluated
  labels.resize(49);
  EXPECT_EQ(line({0.0}), "");  // too few images
  labels.assign(60, 1);
  EXPECT_EQ(line({1.0}), "");  // of one class

  const logging::SummaryRecord summary = after_seven_epochs();
  const Lines lines = end_lines({.summary = summary, .folder = "r", .learned_little = text});
  EXPECT_EQ(lines.at(lines.size() - 2), text);
}

TEST(EndLines, WithoutAnEvaluationThereIsNoBest) {
  logging::SummaryRecord summary{.target_accuracy = 0.9, .program = kSeconds};
  summary.result.progress.epochs = 2;
  EXPECT_EQ(
      end_lines({.summary = summary, .folder = "r"}),
      (Lines{"Target accuracy 0.9: not reached in 2 epochs",
             "Weights: r/weights.safetensors (of the last step)", "Run folder: r", kProgram}));
  summary.target_accuracy.reset();
  EXPECT_EQ(end_lines({.summary = summary, .folder = "r", .keeps_best = true})[1],
            "Best weights: none, no epoch was evaluated");
}

}  // namespace
}  // namespace cputrain::training
