#include "comm/watch/storage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <fstream>
#include <future>
#include <limits>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

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

/// Spins on one CPU, under a policy of sched(7), until it ends.
class Spinning {
 public:
  Spinning(int policy, int cpu, system::WorkMeter* meter)
      : thread_([=, this] {
          cpu_set_t one;
          CPU_ZERO(&one);
          CPU_SET(cpu, &one);
          const sched_param parameters{};
          ::sched_setaffinity(0, sizeof one, &one);
          ::sched_setscheduler(0, policy, &parameters);
          std::optional<system::WorkMeter::Busy> busy;
          if (meter) busy.emplace(*meter);
          begun_.set_value();
          while (!ends_) continue;
        }) {
    begun_.get_future().wait();
  }
  ~Spinning() {
    ends_ = true;
    thread_.join();
  }
  Spinning(const Spinning&) = delete;
  Spinning& operator=(const Spinning&) = delete;

 private:
  std::atomic<bool> ends_{false};
  std::promise<void> begun_;
  std::thread thread_;
};

// Beside a thread that spins, an idle one has next to no turns.
TEST(StorageAccount, WhoLacksACpuDoesNotWaitForStorage) {
  const int cpu = ::sched_getcpu();
  system::WorkMeter meter;
  const Spinning writer(SCHED_IDLE, cpu, &meter), other(SCHED_OTHER, cpu, nullptr);
  StorageAccount account({{"logs", &meter}});
  int without_turn = 0;
  double cpu_seconds = -1;
  for (int second = 0; second < 100000 && without_turn < 100; ++second) {
    without_turn += std::exchange(cpu_seconds, *meter.cpu_seconds()) == *meter.cpu_seconds();
    EXPECT_TRUE(account.look(10 * second).what.empty());
  }
  EXPECT_EQ(without_turn, 100);
}

// fsync uses no CPU time while its disk writes what came before.
TEST(StorageAccount, ADiskThatCompletesWritesGetsOn) {
  const testing::TemporaryFolder folder;
  struct stat about {};
  ASSERT_EQ(::stat(folder.path().c_str(), &about), 0);
  const std::filesystem::path counters =
      folder.path() / fmt::format("sys/dev/block/{}:{}", major(about.st_dev), minor(about.st_dev));
  std::filesystem::create_directories(counters);
  // Fields of Linux's Documentation/admin-guide/iostats.rst.
  const auto complete = [&](int reads, int writes, int flushes) {
    std::ofstream(counters / "stat")
        << fmt::format("{} 3 4 5 {} 7 8 9 1 11 12 13 14 15 16 {} 18\n", reads, writes, flushes);
  };
  complete(10, 20, 30);
  const auto disk = std::make_shared<const system::DiskWrites>(folder.path(), folder.path());
  Waiting waiting;
  StorageAccount account({{"a checkpoint", waiting.meter(), disk}});
  const double began = begin_of_silence(account, 5);
  complete(10, 21, 30);
  EXPECT_EQ(account.look(began + 60).still, 0);
  complete(10, 21, 31);
  EXPECT_EQ(account.look(began + 70).still, 0);
  complete(99, 21, 31);  // who reads does not help a write
  const StorageSilence silence = account.look(began + 80);
  EXPECT_EQ(silence.still, 10);
  EXPECT_EQ(silence.seconds, 80);
}

// A working thread that waits for the end of a write is no more idle than that.
TEST(StorageAccount, WhoWaitsForAWriterIsIdleAsLongAsItIsStill) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Waiting waiting;
  const system::WorkMeter at_rest;
  StorageAccount resting({{"logs", &at_rest}}), account({{"a checkpoint", waiting.meter()}});
  EXPECT_EQ(resting.look(5).idle, kNever);
  const double began = begin_of_silence(account, 5);
  EXPECT_EQ(account.look(began + 600).idle, 600);
  waiting.end();
  EXPECT_EQ(account.look(began + 601).idle, 0);
  EXPECT_EQ(account.look(began + 602).idle, 1);
  EXPECT_EQ(account.look(began + 620).idle, kNever);
}

// A file system that names no disk lies on one of many, which others may keep busy for ever.
TEST(StorageAccount, DisksThatMayBeOthersExcuseAWriterForAWhile) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path counters = folder.path() / "proc";
  std::filesystem::create_directories(counters);
  const auto complete = [&](int writes) {
    std::ofstream(counters / "diskstats")
        << fmt::format("8 0 sda 1 2 3 4 0\n8 16 sdb 1 2 3 4 {} 6 7 8\n", writes);
  };
  complete(1);
  const auto disk = std::make_shared<const system::DiskWrites>(folder.path(), folder.path(),
                                                               OVERLAYFS_SUPER_MAGIC);
  Waiting waiting;
  StorageAccount account({{"a checkpoint", waiting.meter(), disk}});
  const double began = begin_of_silence(account, 5);
  complete(2);
  EXPECT_EQ(account.look(began + kBusyOthers - 1).still, 0);
  complete(3);
  const StorageSilence silence = account.look(began + kBusyOthers + 19);
  EXPECT_EQ(silence.still, kStorageGrace);
  EXPECT_EQ(silence.idle, kStorageGrace);
}

TEST(StorageNarrator, SaysItOnceAMinuteAndAtItsEnd) {
  StorageNarrator narrator("runs/a", 0, "node7", {});
  const auto told = [&](double seconds, double now, bool keeps_steps = false) {
    return narrator.hear({{"a checkpoint", "logs"}, seconds, keeps_steps, seconds}, kPlace, now);
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

TEST(StorageNarrator, ASlowDiskIsNamed) {
  StorageNarrator narrator("runs/a", 0, "node7", {});
  const auto word = narrator.hear({.what = {"logs"}, .seconds = 60, .still = 0.9}, kPlace, 100);
  ASSERT_TRUE(word);
  EXPECT_TRUE(word->line.starts_with(
      "warning: storage has not answered for 60 s (its disk is slow and gets on): rank 0 on"))
      << word->line;
}

TEST(StorageNarrator, SaysNothingOfWhatAnswersInTime) {
  StorageNarrator narrator("runs/a", 0, "node7", {.warning = 600, .timeout = 100});
  EXPECT_FALSE(narrator.hear({{"logs"}, 49}, kPlace, 49));
  EXPECT_FALSE(narrator.hear({}, kPlace, 50));
  EXPECT_TRUE(narrator.hear({{"logs"}, 50}, kPlace, 100));  // half of the time-out
}

TEST(StorageFarewell, ASignalLeavesStorageTwentySeconds) {
  StorageAccount account{std::vector<Writing>{}};
  const auto heard = [&](double silent, int signals, double now) {
    StorageSilence silence;
    if (silent > 0) silence = {{"logs"}, silent, false, silent};
    return account.farewell(silence, signals, now);
  };
  EXPECT_EQ(heard(500, 0, 1000), Farewell::none);
  EXPECT_EQ(heard(501, 1, 1001), Farewell::announced);
  EXPECT_EQ(heard(520, 1, 1020), Farewell::none);
  EXPECT_EQ(heard(521, 1, 1021), Farewell::now);
}

StorageSilence silent_for(double seconds, double still) {
  return {.what = {"a checkpoint"}, .seconds = seconds, .still = still};
}

TEST(StorageFarewell, WhatAnswersIsWaitedFor) {
  StorageAccount account{std::vector<Writing>{}};
  EXPECT_EQ(account.farewell({}, 1, 0), Farewell::none);
  EXPECT_EQ(account.farewell(silent_for(9, 9), 1, 100), Farewell::announced);
  EXPECT_EQ(account.farewell({}, 1, 101), Farewell::none);
  EXPECT_EQ(account.farewell(silent_for(19, 19), 1, 140), Farewell::none);
  EXPECT_EQ(account.farewell(silent_for(20, 20), 1, 141), Farewell::now);
}

TEST(StorageFarewell, SoIsASlowDiskThatGetsOn) {
  StorageAccount account{std::vector<Writing>{}};
  for (int second = 1; second < 1000; ++second) {
    EXPECT_EQ(account.farewell(silent_for(second, 0.5), second < 500 ? 1 : 2, second),
              Farewell::none);
  }
  EXPECT_EQ(account.farewell(silent_for(1001.5, 1.5), 2, 1001), Farewell::announced);
  EXPECT_EQ(account.farewell(silent_for(1002, 2), 2, 1002), Farewell::now);
}

TEST(StorageFarewell, AnotherSignalLeavesItTwo) {
  StorageAccount account{std::vector<Writing>{}};
  EXPECT_EQ(account.farewell(silent_for(1.5, 1.5), 2, 0), Farewell::announced);
  EXPECT_EQ(account.farewell(silent_for(2, 2), 2, 0.5), Farewell::now);
}

}  // namespace
}  // namespace cputrain::watch
