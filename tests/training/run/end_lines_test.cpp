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
  const std::vector<std::int32_t> labels{0, 1, 1, 0, 1, 1};  // one answer is right for two thirds
  const auto line = [&](const std::map<int, double>& accuracies) {
    return learned_little(accuracies, labels);
  };
  const std::string text = line({{1, 0.5}, {2, 2.0 / 3}, {3, 1.0 / 3}});
  EXPECT_NE(text.find("(val_accuracy 0.6667)"), std::string::npos) << text;
  EXPECT_FALSE(line({{1, 0.0}}).empty());
  EXPECT_EQ(line({{1, 0.5}, {2, 5.0 / 6}, {3, 0.5}}), "");  // any epoch counts
  EXPECT_EQ(line({}), "");                                  // none was evaluated
  const std::map<int, double> right{{1, 1.0}};
  EXPECT_EQ(learned_little(right, {}), "");
  EXPECT_EQ(learned_little(right, std::vector<std::int32_t>(4, 1)), "");  // of one class

  const logging::SummaryRecord summary = after_seven_epochs();
  const Lines lines = end_lines({.summary = summary, .folder = "r", .little = text});
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
