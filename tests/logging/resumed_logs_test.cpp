// Logs of a training that goes on are those of one that was never stopped.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "logging/reporters.h"
#include "system/usage/write_queue.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::logging {
namespace {

constexpr std::size_t kSteps = 6, kInEpoch = 2;
constexpr const char* kLogs[] = {"metrics.jsonl", "training.csv", "mlperf.log"};

compute::Tally tally_of(std::size_t step) {
  return {1.0 / (3.0 + static_cast<double>(step)), 1, 4};
}

loop::EpochRecord epoch_of(std::size_t number) {
  loop::EpochRecord record{{.steps = kInEpoch,
                            .train = tally_of(100 + number),
                            .seconds = 1.25 * static_cast<double>(number),
                            .learning_rate = 0.1},
                           static_cast<int>(number)};
  if (number % 2 == 0) {  // not each epoch is evaluated
    record.validation = tally_of(200 + number);
    record.averaged = tally_of(300 + number);
  }
  record.kernels = "d w s";
  return record;
}

/// Everything that happens from `from` steps on, which ends with the end of an epoch where that is
/// the last step of one.
void tell(RunReporter& reporter, std::size_t from, std::size_t to) {
  for (std::size_t step = from; step < to; ++step) {
    const std::size_t epoch = step / kInEpoch + 1, in_epoch = step % kInEpoch + 1;
    if (step == from || in_epoch == 1) {
      reporter.begin_epoch({static_cast<int>(epoch), 3, kInEpoch, in_epoch - 1});
    }
    loop::StepRecord record{step + 1, static_cast<int>(epoch), in_epoch, tally_of(step)};
    record.epoch_tally.images = 4.0 * static_cast<double>(in_epoch);
    record.seconds = 0.5;
    record.skipped = step == 3;
    reporter.step(record);
    if (in_epoch == kInEpoch) reporter.epoch(epoch_of(epoch));
  }
}

LogPlace place_after(std::size_t steps) {
  const std::size_t epochs = steps / kInEpoch;
  return {{.steps = steps,
           .images = 4 * epochs,  // as the epochs' records say
           .epochs = static_cast<int>(epochs)}};
}

class ResumedLogs : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::unique_ptr<RunReporter> reporter(const std::filesystem::path& folder,
                                        const LogPlace& place = {},
                                        system::WriteQueue* queue = nullptr) const {
    std::filesystem::create_directories(folder);
    const auto metrics = folder / "metrics.jsonl";
    std::vector<std::unique_ptr<RunReporter>> list;
    list.push_back(json_lines_reporter(metrics, 1, place, queue));
    list.push_back(csv_reporter(folder / "training.csv", true, true, place, queue));
    list.push_back(history_reporter(folder / "history.json",
                                    place.goes_on() ? metrics : std::filesystem::path(), queue));
    list.push_back(mlperf_reporter(folder / "mlperf.log", {}, place, queue));
    return all_of(std::move(list));
  }

  static std::string text_of(const std::filesystem::path& path) {
    return std::regex_replace(testing::text_of(path), std::regex("\"time_ms\": [0-9]+"),
                              "\"time_ms\": 0");
  }

  const testing::TemporaryFolder folder_;
  const SummaryRecord summary_{.result = {.progress = {.steps = kSteps, .epochs = 3}}};
};

TEST_P(ResumedLogs, AreThoseOfATrainingThatWasNotStopped) {
  const auto whole = folder_.path() / "whole", parts = folder_.path() / "parts";
  {
    const auto all = reporter(whole);
    tell(*all, 0, kSteps);
    all->summary(summary_);
  }
  std::map<std::string, std::uintmax_t> marks;
  {
    const auto first = reporter(parts);
    tell(*first, 0, GetParam());
    for (const char* log : kLogs) marks[log] = std::filesystem::file_size(parts / log);
    tell(*first, GetParam(), kSteps);  // nobody has saved that
  }
  for (const char* log : kLogs) std::filesystem::resize_file(parts / log, marks[log]);
  {
    const auto rest = reporter(parts, place_after(GetParam()));
    tell(*rest, GetParam(), kSteps);
    rest->summary(summary_);
  }
  for (const char* log : {"metrics.jsonl", "training.csv", "mlperf.log", "history.json"}) {
    EXPECT_EQ(text_of(parts / log), text_of(whole / log)) << log;
  }
}

TEST_P(ResumedLogs, AreTheSameBytesByAThreadThatStorageKeepsWaiting) {
  const auto whole = folder_.path() / "whole", queued = folder_.path() / "queued";
  const auto tell_all = [&](RunReporter& all) {
    tell(all, 0, kSteps);
    all.summary(summary_);
  };
  tell_all(*reporter(whole));
  std::promise<void> go;
  system::WriteQueue queue;
  queue.add(0, [&] { go.get_future().wait(); });
  const auto all = reporter(queued, {}, &queue);
  tell_all(*all);
  go.set_value();
  queue.finish();
  for (const char* log : {"metrics.jsonl", "training.csv", "mlperf.log", "history.json"}) {
    EXPECT_EQ(text_of(queued / log), text_of(whole / log)) << log;
  }
}

// Also behind the last one, where the summary alone is missing.
INSTANTIATE_TEST_SUITE_P(After, ResumedLogs, ::testing::Values(1, 2, 3, 4, 5, 6));

using NewLogs = ResumedLogs;

// Somebody asks for a log when the training goes on, or a person removed it.
TEST_P(NewLogs, OfATrainingThatGoesOnBeginAsOthersDo) {
  const auto path = folder_.path();
  tell(*reporter(path, place_after(GetParam())), GetParam(), kSteps);
  EXPECT_TRUE(text_of(path / "training.csv").starts_with("epoch,accuracy,loss,val"));
  const std::string mlperf = text_of(path / "mlperf.log");
  EXPECT_LT(mlperf.find("submission_benchmark"), mlperf.find("run_start"));
  EXPECT_LT(mlperf.find("run_start"), mlperf.find("epoch_st"));
}

INSTANTIATE_TEST_SUITE_P(After, NewLogs, ::testing::Values(2, 3));

// The whole history is written anew after each epoch: what waits of it must not fill the queue.
TEST(History, ThatWaitsForStorageGivesWayToTheNext) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "history.json";
  std::promise<void> answers;
  system::WriteQueue queue({}, 1000);
  const auto reporter = history_reporter(path, {}, &queue);
  queue.post([&answers] { answers.get_future().wait(); });
  std::promise<void> told;
  std::thread epochs([&] {
    for (std::size_t i = 1; i <= 100; ++i) reporter->epoch(epoch_of(i));
    told.set_value();
  });
  const auto all = told.get_future();
  while (!queue.is_full() &&
         all.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  EXPECT_FALSE(queue.is_full());
  answers.set_value();
  epochs.join();
  queue.finish();
  EXPECT_EQ(nlohmann::json::parse(testing::text_of(path))["loss"].size(), 100U);
}

class ResumedHistory : public ::testing::Test {
 protected:
  nlohmann::json figures() const {
    return nlohmann::json::parse(std::ifstream(folder_.path() / "history.json"));
  }
  const testing::TemporaryFolder folder_;
};

TEST_F(ResumedHistory, GoesOnWithWhatOtherLinesAndDamageLeave) {
  const auto metrics = folder_.path() / "metrics.jsonl";
  std::ofstream(metrics) << R"({"type":"resume","step":3,"loss":9}
{"type":"epoch","epoch":1,"steps":1,"images":8,"seconds":1,"loss":0.5,"accuracy":null,"lr":0.1}
[1]
{"type":"epo
{"type":"epoch","epoch":2,"steps":1,"images":8,"seconds":1,"loss":0.25,"accuracy":1.0,"lr":0.1}
{"type":"ep)";
  std::ofstream(folder_.path() / "history.json") << "later than the place";
  const auto reporter = history_reporter(folder_.path() / "history.json", metrics);
  EXPECT_EQ(figures().dump(),
            R"({"accuracy":[null,1.0],"learning_rate":[0.1,0.1],"loss":[0.5,0.25]})");
}

nlohmann::json only_line(const std::function<void(RunReporter&)>& record) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  record(*json_lines_reporter(path, 1));
  return nlohmann::json::parse(std::ifstream(path));
}

TEST(JsonLines, SayWhereATrainingGoesOn) {
  const nlohmann::json line = only_line([](RunReporter& r) {
    r.resumed({.progress = {.steps = 7, .epochs = 1, .begun = loop::EpochSums{.steps = 2}}}, 3,
              "ckpt-000000007");
  });
  EXPECT_EQ(line, nlohmann::json::parse(R"({"type":"resume","step":7,"epoch":2,"made":2,"ranks":3,
                                            "checkpoint":"ckpt-000000007"})"));
  const nlohmann::json more = only_line([](RunReporter& r) {
    r.resumed({.progress = {.steps = 7, .left_out = {9}, .tuned_methods = "d w"}}, 1, "");
  });
  EXPECT_EQ(more["kernels"], "d w");
  EXPECT_EQ(more["left_out"].dump(), "[9]");
}

TEST(JsonLines, HaveNoFiguresOfAStepThatWasSkipped) {
  const nlohmann::json line = only_line([](RunReporter& r) {
    loop::StepRecord record{.step = 1, .tally = {std::nan(""), 1, 4}};
    record.skipped = true;
    r.step(record);
  });
  EXPECT_EQ(line["skipped"], true);
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["accuracy"].is_null());
  EXPECT_FALSE(line.contains("nan"));
}

TEST(JsonLines, NameTheBestEpoch) {
  const nlohmann::json line = only_line([](RunReporter& r) {
    r.summary({.result = {.progress = {.best = {.loss = 0.5, .epoch = 3}}, .early_stopped = true}});
  });
  EXPECT_EQ(line["best_epoch"], 3);
  EXPECT_EQ(line["best_loss"], 0.5);
  EXPECT_EQ(line["monitor"], "loss");
  EXPECT_EQ(line["early_stopped"], true);
  EXPECT_FALSE(only_line([](RunReporter& r) { r.summary({}); }).contains("best_loss"));
  const nlohmann::json other = only_line([](RunReporter& r) {
    r.summary({.result = {.progress = {.best = {.loss = 0.5, .epoch = 3, .accuracy = 0.9}}}});
  });
  EXPECT_EQ(other["monitor"], "accuracy");
}

}  // namespace
}  // namespace cputrain::logging
