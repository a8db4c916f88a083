#include "comm/watch/storage.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

namespace cputrain::watch {
namespace {

constexpr comm::Place kPlace{.calls = 0, .step = 120, .phase = comm::Phase::forward};

/// A thread that is at work and uses no CPU until it is let go.
class Waiting {
 public:
  Waiting() { begun_.get_future().wait(); }
  ~Waiting() { end(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  void end() {
    if (!thread_.joinable()) return;
    go_.set_value();
    thread_.join();
  }
  const system::WorkMeter* meter() const { return &meter_; }

 private:
  system::WorkMeter meter_;
  std::promise<void> begun_, go_;
  std::thread thread_{[this] {
    const system::WorkMeter::Busy busy(meter_);
    begun_.set_value();
    go_.get_future().wait();
  }};
};

/// Looks until the thread has come to its wait.
double begin_of_silence(StorageAccount& account, double now) {
  for (int i = 0; i < 50; ++i) {
    account.look(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return now;
}

TEST(StorageAccount, WhoWritesAndUsesNoCpuIsSilent) {
  Waiting waiting;
  const system::WorkMeter idle;
  StorageAccount account({{"a checkpoint", waiting.meter()}, {"logs", &idle}});
  const double began = begin_of_silence(account, 5);
  const StorageSilence silence = account.look(began + 60);
  EXPECT_EQ(silence.what, std::vector<std::string>{"a checkpoint"});
  EXPECT_EQ(silence.seconds, 60);
  waiting.end();
  EXPECT_TRUE(account.look(began + 61).what.empty());
}

TEST(StorageAccount, WhoGetsOnSlowlyIsNot) {
  system::WorkMeter meter;
  const system::WorkMeter::Busy busy(meter);
  StorageAccount account({{"logs", &meter}});
  for (int second = 0; second < 100; ++second) {
    const double before = meter.cpu_seconds().value();
    while (meter.cpu_seconds() == before) continue;
    EXPECT_TRUE(account.look(second).what.empty());
  }
}

TEST(StorageNarrator, SaysItOnceAMinuteAndAtItsEnd) {
  StorageNarrator narrator("runs/a", 0, "node7", {});
  const auto told = [&](double seconds, double now, bool keeps_steps = false) {
    return narrator.hear({{"a checkpoint", "logs"}, seconds, keeps_steps}, kPlace, now);
  };
  EXPECT_FALSE(narrator.hear({}, kPlace, 0));
  EXPECT_FALSE(told(59, 100));
  const auto first = told(60, 101);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->line,
            "warning: storage has not answered for 60 s: rank 0 on node7 writes a checkpoint, logs "
            "in runs/a; steps go on, and what is written later waits");
  EXPECT_EQ(first->entry.dump(),
            R"({"event":"storage","cause":"storage","seconds":60.0,"ranks":[0],"hosts":["node7"],)"
            R"("step":120,"phase":"forward","by":0})");
  EXPECT_FALSE(told(119, 160));
  const auto second = told(120, 161, true);
  ASSERT_TRUE(second);
  EXPECT_NE(second->line.find("steps wait for it"), std::string::npos) << second->line;
  const auto end = narrator.hear({}, kPlace, 165.5);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->line, "storage answers again after 124.5 s: runs/a");
  EXPECT_EQ(end->entry.at("event"), "storage_answers");
  EXPECT_FALSE(narrator.hear({}, kPlace, 166));
}

TEST(StorageNarrator, SaysNothingOfWhatAnswersInTime) {
  StorageNarrator narrator("runs/a", 0, "node7", {.warning = 600, .timeout = 100});
  EXPECT_FALSE(narrator.hear({{"logs"}, 49}, kPlace, 49));
  EXPECT_FALSE(narrator.hear({}, kPlace, 50));
  EXPECT_TRUE(narrator.hear({{"logs"}, 50}, kPlace, 100));  // half of the time-out
}

TEST(StorageFarewell, ASignalLeavesStorageTwentySeconds) {
  StorageFarewell farewell;
  const auto heard = [&](double silent, int signals, double now) {
    StorageSilence silence;
    if (silent > 0) silence = {{"logs"}, silent};
    return farewell.hear(silence, signals, now);
  };
  EXPECT_EQ(heard(500, 0, 1000), Farewell::none);
  EXPECT_EQ(heard(501, 1, 1001), Farewell::announced);
  EXPECT_EQ(heard(520, 1, 1020), Farewell::none);
  EXPECT_EQ(heard(521, 1, 1021), Farewell::now);
}

TEST(StorageFarewell, WhatAnswersIsWaitedFor) {
  StorageFarewell farewell;
  EXPECT_EQ(farewell.hear({}, 1, 0), Farewell::none);
  EXPECT_EQ(farewell.hear({{"a checkpoint"}, 9}, 1, 100), Farewell::announced);
  EXPECT_EQ(farewell.hear({}, 1, 101), Farewell::none);
  EXPECT_EQ(farewell.hear({{"a checkpoint"}, 19}, 1, 140), Farewell::none);
  EXPECT_EQ(farewell.hear({{"a checkpoint"}, 20}, 1, 141), Farewell::now);
}

TEST(StorageFarewell, AnotherSignalLeavesItTwo) {
  StorageFarewell farewell;
  EXPECT_EQ(farewell.hear({{"logs"}, 1.5}, 2, 0), Farewell::announced);
  EXPECT_EQ(farewell.hear({{"logs"}, 2}, 2, 0.5), Farewell::now);
}

}  // namespace
}  // namespace cputrain::watch
