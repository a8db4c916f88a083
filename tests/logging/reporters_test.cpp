#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "logging/reporters.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::logging {
namespace {

loop::EpochRecord epoch_record() {
  loop::EpochRecord record{{.steps = 196, .seconds = 42.2, .learning_rate = 0.01}, 1};
  record.train = {2.0179 * 50000, 0.2585 * 50000, 50000};
  record.budget = {1, 2, 3, 4, 5, 6, 21.2};
  return record;
}

using testing::text_of;

/// What a console reporter prints for these records.
std::string printed(Verbosity verbosity, const std::function<void(RunReporter&)>& records) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "console";
  std::FILE* stream = std::fopen(path.c_str(), "w");
  records(*console_reporter(stream, stream, verbosity, false));
  std::fclose(stream);
  return text_of(path);
}

/// What progress lines these records make; `now` is the clock.
std::string progress_of(const std::function<void(RunReporter&, double& now)>& records) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "progress";
  std::FILE* stream = std::fopen(path.c_str(), "w");
  double now = 1000;
  records(*progress_reporter(stream, [&now] { return now; }), now);
  std::fclose(stream);
  return text_of(path);
}

// Lines every 30 s by the clock, whatever comes then: steps, or evaluation.
TEST(ProgressLines, AppearEveryThirtySecondsOfTrainingAndEvaluation) {
  const std::string text = progress_of([](RunReporter& reporter, double& now) {
    reporter.begin_epoch({2, 5, 100});
    for (std::size_t step = 1; step <= 100; ++step) {
      now += 1;  // 50 images, half of them right
      loop::StepRecord record{.step_in_epoch = step};
      record.epoch_tally = {0.5 * 50 * static_cast<double>(step), 25.0 * static_cast<double>(step),
                            50.0 * static_cast<double>(step)};
      reporter.step(record);
    }
    for (std::size_t images = 100; images <= 4000; images += 100) {
      now += 1;
      reporter.validating(images, 4000);
    }
    reporter.epoch(epoch_record());
    reporter.begin_epoch({3, std::nullopt, 100});
    now += 30;
    reporter.step({.step_in_epoch = 1});
  });
  // 2,000 of 4,000 images had taken 19 s since the first was told of.
  EXPECT_EQ(text,
            "Epoch 2/5 - step 30/100 - ETA: 1:10 - loss: 0.5000 - accuracy: 0.5000 - img/s: 50.0\n"
            "Epoch 2/5 - step 60/100 - ETA: 40s - loss: 0.5000 - accuracy: 0.5000 - img/s: 50.0\n"
            "Epoch 2/5 - step 90/100 - ETA: 10s - loss: 0.5000 - accuracy: 0.5000 - img/s: 50.0\n"
            "Epoch 2/5 - validation 2,000/4,000 - ETA: 19s\n"
            "Epoch 3 - step 1/100 - ETA: 49:30 - loss: 0.0000 - accuracy: 0.0000 - img/s: 0.0\n");
}

// 60 of 100 steps were made before: those after them take a second each.
TEST(ProgressLines, CountTheTimeOfStepsThatWereMadeHere) {
  const std::string text = progress_of([](RunReporter& reporter, double& now) {
    reporter.begin_epoch({1, 1, 100, 60});
    for (std::size_t step = 61; step <= 90; ++step) {
      now += 1;
      loop::StepRecord record{.step_in_epoch = step};
      record.tally.images = 50;
      record.epoch_tally.images = 50.0 * static_cast<double>(step);
      reporter.step(record);
    }
  });
  EXPECT_EQ(text,
            "Epoch 1/1 - step 90/100 - ETA: 10s - loss: 0.0000 - accuracy: 0.0000 - img/s: 50.0\n");
}

// Answers beside a loss that is no number are none.
TEST(ProgressLines, HaveNoAccuracyBesideALossThatIsNaN) {
  const std::string text = progress_of([](RunReporter& reporter, double& now) {
    reporter.begin_epoch({1, 1, 10});
    now += 30;
    loop::StepRecord record{.step_in_epoch = 3};
    record.epoch_tally = {std::nan(""), 75, 150};
    reporter.step(record);
  });
  EXPECT_EQ(text, "Epoch 1/1 - step 3/10 - ETA: 1:10 - loss: nan - img/s: 5.0\n");
}

// The line of the published Keras log, then our own field: of a few images that are alike features
// may be kept, and of more it is another speed.
TEST(Console, PrintsKerasLineOfAnEpoch) {
  const std::string text = printed(Verbosity::lines, [](RunReporter& r) {
    r.begin_epoch({1, 5, 196});
    for (const double from_features : {4999, 5000}) {
      loop::EpochRecord record = epoch_record();
      record.from_features = from_features;
      r.epoch(record);
    }
  });
  const std::string line = "196/196 - 42s - loss: 2.0179 - accuracy: 0.2585 - img/s: 1184.8";
  EXPECT_EQ(text, "Epoch 1/5\n" + line + "\n" + line + " (features kept)\n");
}

TEST(Console, PrintsValidationAndTinyValuesAsKerasDoes) {
  const std::string text = printed(Verbosity::lines, [](RunReporter& r) {
    loop::EpochRecord record{{.steps = 5, .seconds = 2}, 1};
    record.train = {0.0005, 1, 1};
    record.validation = compute::Tally{2, 1, 4};
    r.begin_epoch({1, std::nullopt, 12});
    r.epoch(record);
  });
  EXPECT_EQ(text,
            "Epoch 1\n 5/12 - 2s - loss: 5.0000e-04 - accuracy: 1.0000 - val_loss: 0.5000 - "
            "val_accuracy: 0.2500 - img/s: 0.5\n");
}

TEST(Console, WarnsOfASkippedStep) {
  const std::string text = printed(Verbosity::lines, [](RunReporter& r) {
    r.begin_epoch({1, 1, 196});
    r.step({.step = 7, .step_in_epoch = 7, .skipped = true});
  });
  EXPECT_EQ(text, "Epoch 1/1\nWarning: step 7 was skipped: its gradients were NaN or infinite\n");
}

TEST(Console, SaysWhereAPlateauChangedTheRate) {
  const auto changed = [](RunReporter& r) { r.rate_changed(12, 0.005 * 0.1); };
  EXPECT_EQ(printed(Verbosity::lines, changed),
            "Learning rate 0.0005 from epoch 12 on (plateau)\n");
  EXPECT_EQ(printed(Verbosity::silent, changed), "");
}

TEST(Console, DrawsKerasBar) {
  const std::string text = printed(Verbosity::bar, [](RunReporter& r) {
    r.begin_epoch({1, 1, 196});
    r.epoch(epoch_record());
  });
  EXPECT_NE(text.find("196/196 [==============================] - 42s "), std::string::npos)
      << text;
  EXPECT_NE(text.find("/step - loss: 2.0179 - accuracy: 0.2585"), std::string::npos) << text;
  EXPECT_TRUE(printed(Verbosity::silent, [](RunReporter& r) {
                r.begin_epoch({1, 1, 196});
                r.epoch(epoch_record());
              }).empty());
}

std::vector<nlohmann::json> lines(std::size_t log_every,
                                  const std::function<void(RunReporter&)>& records) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  records(*json_lines_reporter(path, log_every));
  std::vector<nlohmann::json> list;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) list.push_back(nlohmann::json::parse(line));
  return list;
}

TEST(JsonLines, HasTheDocumentedKeys) {
  const auto list = lines(2, [](RunReporter& r) {
    r.begin_epoch({1, 1, 3});
    for (std::uint64_t step = 1; step <= 3; ++step) {
      r.step(
          {step, 1, step, {0.1 + 0.2, 1, 2}, {0, 0, 2.0 * static_cast<double>(step)}, 0.01, 1.5});
    }
    loop::EpochRecord record = epoch_record();
    record.taken = {.cpu_wait = 0.5, .stolen = 0.25};
    r.epoch(record);
    r.summary({.result = {.progress = {.steps = 3, .epochs = 1}}, .weights_hash = "00ff"});
  });
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["type"], "step");
  EXPECT_EQ(list[0]["step"], 2);
  EXPECT_EQ(list[0]["images"], 2);
  EXPECT_EQ(list[0]["images_seen"], 4);
  EXPECT_EQ(list[0]["loss"].get<double>(), (0.1 + 0.2) / 2);  // every digit survives
  EXPECT_EQ(list[0]["accuracy"], 0.5);
  EXPECT_EQ(list[1]["type"], "epoch");
  EXPECT_EQ(list[1]["budget"].size(), 7u);
  EXPECT_EQ(list[1]["budget"]["other"], 21.2);
  EXPECT_FALSE(list[1].contains("val_loss"));
  EXPECT_EQ(list[1]["stolen"], 0.25);
  EXPECT_EQ(list[1]["cpu_wait"], 0.5);
  EXPECT_EQ(list[2]["type"], "summary");
  EXPECT_EQ(list[2]["weights_hash"], "00ff");
}

TEST(JsonLines, HaveTheLastStepOfShortEpochs) {
  const auto list = [](std::size_t log_every) {
    return lines(log_every, [](RunReporter& r) {
      for (std::uint64_t step = 1; step <= 6; ++step) {
        r.step({.step = step, .tally = {1, 1, 4}, .ends_epoch = step % 3 == 0});
      }
    });
  };
  ASSERT_EQ(list(10).size(), 2u);
  EXPECT_EQ(list(10)[0]["step"], 3);
  EXPECT_EQ(list(10)[1]["step"], 6);
  EXPECT_TRUE(list(0).empty());
}

// Epochs of 7 images in steps of 4 and 3; every third step has a line.
TEST(JsonLines, CountsTheImagesOfStepsWithoutALine) {
  const auto list = lines(3, [](RunReporter& r) {
    for (std::uint64_t step = 1; step <= 6; ++step) {
      const int epoch = static_cast<int>((step + 1) / 2);
      const compute::Tally first{1, 1, 4}, all{1, 1, 7};
      const bool last = step % 2 == 0;
      r.step({step, epoch, last ? 2u : 1u, last ? compute::Tally{1, 1, 3} : first,
              last ? all : first, 0.1, 1});
      if (last) r.epoch({{.steps = 2, .train = all}, epoch});
    }
  });
  ASSERT_EQ(list.size(), 5u);  // two steps, three epochs
  EXPECT_EQ(list[1]["step"], 3);
  EXPECT_EQ(list[1]["images_seen"], 11);
  EXPECT_EQ(list[3]["step"], 6);
  EXPECT_EQ(list[3]["images_seen"], 21);
}

TEST(JsonLines, WritesNullForWhatIsNotANumber) {
  const auto list = lines(1, [](RunReporter& r) {
    r.step({1, 1, 1, {std::nan(""), 0, 1}, {}, 0.1, 1});
  });
  ASSERT_EQ(list.size(), 1u);
  EXPECT_TRUE(list[0]["loss"].is_null());
  EXPECT_EQ(list[0]["nan"], true);
}

loop::EpochRecord epoch_of(int epoch, double loss, std::optional<compute::Tally> validation) {
  loop::EpochRecord record{{.steps = 1}, epoch};
  record.train = {loss, 1, 4};
  record.validation = validation;
  return record;
}

/// Milliseconds of the last line of this key.
std::int64_t time_of(const std::string& log, const std::string& key) {
  const std::size_t line = log.rfind("\"time_ms\": ", log.rfind("\"key\": \"" + key + "\""));
  return std::stoll(log.substr(line + 11));
}

std::string mlperf_log(const std::function<void(RunReporter&)>& records) {
  const testing::TemporaryFolder folder;
  records(*mlperf_reporter(folder.path() / "mlperf.log", {}));
  return text_of(folder.path() / "mlperf.log");
}

TEST(Mlperf, AnExceptionEndsARunWhereItComes) {
  const std::string log = mlperf_log([](RunReporter& r) {
    r.begin_epoch({1, 2, 1});
    r.epoch(epoch_of(1, 2, std::nullopt));
    r.begin_epoch({2, 2, 1});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  EXPECT_NE(log.find("\"status\": \"aborted\""), std::string::npos) << log;
  EXPECT_GE(time_of(log, "run_stop") - time_of(log, "epoch_start"), 190) << log;
}

TEST(Mlperf, WhatComesBehindTheLastEpochIsNoPartOfTheRun) {
  const std::string log = mlperf_log([](RunReporter& r) {
    r.begin_epoch({1, 1, 1});
    r.epoch(epoch_of(1, 2, std::nullopt));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // weights are saved
    r.summary({.result = {.progress = {.steps = 1, .epochs = 1}}});
  });
  EXPECT_NE(log.find("\"status\": \"success\""), std::string::npos) << log;
  EXPECT_LE(time_of(log, "run_stop") - time_of(log, "epoch_stop"), 100) << log;
}

// The header and the words for missing figures are those of Keras' CSVLogger; the rate comes last.
TEST(Csv, HasKerasColumnsWholeAfterEveryEpoch) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "training.csv";
  const auto reporter = csv_reporter(path);
  reporter->epoch(epoch_of(1, 2, compute::Tally{0.5, 2, 2}));
  EXPECT_EQ(text_of(path),
            "epoch,accuracy,loss,val_accuracy,val_loss,learning_rate\r\n0,0.25,0.5,1,0.25,0\r\n");
  loop::EpochRecord last = epoch_of(2, std::nan(""), std::nullopt);
  last.learning_rate = 0.0005;
  reporter->epoch(last);
  EXPECT_TRUE(text_of(path).ends_with("\r\n1,NA,nan,NA,NA,0.0005\r\n")) << text_of(path);
}

// As Keras 3's CSVLogger, whose first epoch need not be evaluated either.
TEST(Csv, HasColumnsOfEvaluationsThatComeLater) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "training.csv";
  const auto reporter = csv_reporter(path, true, true);
  reporter->epoch(epoch_of(1, 2, {}));
  loop::EpochRecord second = epoch_of(2, 2, compute::Tally{0.5, 2, 2});
  second.averaged = compute::Tally{1.5, 1, 2};
  reporter->epoch(second);
  EXPECT_EQ(text_of(path),
            "epoch,accuracy,loss,val_accuracy,val_loss,learning_rate,ema_val_accuracy,ema_val_loss"
            "\r\n0,0.25,0.5,NA,NA,0,NA,NA\r\n1,0.25,0.5,1,0.25,0,0.5,0.75\r\n");
}

// A file of before keeps its columns.
TEST(Csv, GoesOnWithTheColumnsThatItHas) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "training.csv";
  std::ofstream(path) << "epoch,accuracy,loss\r\n0,0.25,0.5\r\n";
  csv_reporter(path, false, false, {.progress = {.steps = 1, .epochs = 1}})
      ->epoch(epoch_of(2, 2, {}));
  EXPECT_EQ(text_of(path), "epoch,accuracy,loss\r\n0,0.25,0.5\r\n1,0.25,0.5\r\n");
}

TEST(History, IsWholeJsonAfterEveryEpoch) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "history.json";
  std::ofstream(path) << "an earlier run";
  const auto reporter = history_reporter(path);
  EXPECT_FALSE(std::filesystem::exists(path));
  reporter->epoch(epoch_of(1, 2, compute::Tally{0.5, 2, 2}));
  EXPECT_EQ(nlohmann::json::parse(text_of(path)),
            nlohmann::json::parse(R"({"loss":[0.5],"accuracy":[0.25],"val_loss":[0.25],)"
                                  R"("val_accuracy":[1.0],"learning_rate":[0.0]})"));
  reporter->epoch(epoch_of(2, std::nan(""), std::nullopt));
  EXPECT_EQ(nlohmann::json::parse(text_of(path))["loss"].dump(), "[0.5,null]");
}

/// Validation of whose four images three "were right", beside a loss that is NaN or infinite.
loop::EpochRecord without_predictions(double loss) {
  loop::EpochRecord record = epoch_of(1, 2, compute::Tally{loss, 3, 4, 4, 4});
  record.seconds = 1;
  return record;
}

class NoAccuracy : public ::testing::TestWithParam<double> {
 protected:
  std::filesystem::path file(const char* name) const { return folder_.path() / name; }
  const testing::TemporaryFolder folder_;
  const loop::EpochRecord record_ = without_predictions(GetParam());
};

TEST_P(NoAccuracy, IsPrinted) {
  const std::string text = printed(Verbosity::lines, [&](RunReporter& r) {
    r.begin_epoch({1, 1, 1});
    r.epoch(record_);
  });
  EXPECT_NE(text.find("val_loss: "), std::string::npos) << text;
  EXPECT_EQ(text.find("val_accuracy"), std::string::npos) << text;
  EXPECT_EQ(text.find("val_top_5"), std::string::npos) << text;
}

TEST_P(NoAccuracy, IsInMetrics) {
  const auto list = lines(1, [&](RunReporter& r) {
    r.step({1, 1, 1, *record_.validation, {}, 0.1, 1});
    r.epoch(record_);
  });
  EXPECT_TRUE(list.at(0)["accuracy"].is_null());
  EXPECT_EQ(list.at(1)["accuracy"], 0.25);
  EXPECT_TRUE(list.at(1)["val_loss"].is_null());
  EXPECT_TRUE(list.at(1)["val_accuracy"].is_null());
  EXPECT_FALSE(list.at(1).contains("val_top_5_accuracy"));
}

TEST_P(NoAccuracy, IsInTables) {
  csv_reporter(file("training.csv"))->epoch(record_);
  EXPECT_NE(text_of(file("training.csv")).find("\r\n0,0.25,0.5,NA,"), std::string::npos)
      << text_of(file("training.csv"));
  history_reporter(file("history.json"))->epoch(record_);
  EXPECT_EQ(nlohmann::json::parse(text_of(file("history.json")))["val_accuracy"].dump(), "[null]");
}

TEST_P(NoAccuracy, IsInLogsOfOthers) {
  mlperf_reporter(file("mlperf.log"), {})->epoch(record_);
  const std::string mlperf = text_of(file("mlperf.log"));
  EXPECT_NE(mlperf.find("eval_stop"), std::string::npos);
  EXPECT_EQ(mlperf.find("eval_accuracy"), std::string::npos) << mlperf;
  tensorboard_reporter(folder_.path(), "host", 1)->epoch(record_);
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(file("validation"))) {
    events += text_of(entry.path());
  }
  EXPECT_NE(events.find("epoch_loss"), std::string::npos);
  EXPECT_EQ(events.find("accuracy"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(OfALoss, NoAccuracy, ::testing::Values(std::nan(""), HUGE_VAL, -HUGE_VAL));

}  // namespace
}  // namespace cputrain::logging
