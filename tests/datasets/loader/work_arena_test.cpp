#include "datasets/loader/work_arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cputrain::datasets {
namespace {

TEST(WorkArena, DoesEverythingOnce) {
  for (const int threads : {1, 2, 5}) {
    WorkArena arena(threads);
    for (const std::size_t count : {0u, 1u, 3u, 1000u}) {
      std::vector<std::atomic<int>> times(count);
      arena.for_each(count, [&](std::size_t i) { ++times[i]; });
      for (const auto& one : times) EXPECT_EQ(one, 1);
    }
  }
}

TEST(WorkArena, PassesAnExceptionOn) {
  WorkArena arena(2);
  const auto body = [](std::size_t i) {
    if (i == 50) throw std::runtime_error("fifty");
  };
  EXPECT_THROW(arena.for_each(100, body), std::runtime_error);
  EXPECT_THROW(arena.for_each(100, body, [] {}), std::runtime_error);
}

TEST(WorkArena, ReportsOnTheCallersThreadAndCanBeStoppedThere) {
  WorkArena arena(2);
  const auto caller = std::this_thread::get_id();
  int reports = 0;
  std::atomic<int> done{0};
  arena.for_each(
      100, [&](std::size_t) { ++done; },
      [&] {
        EXPECT_TRUE(std::this_thread::get_id() == caller);
        ++reports;
      });
  EXPECT_EQ(done, 100);
  EXPECT_GE(reports, 1);
  std::atomic<bool> enough{false};
  const auto until = [&](std::size_t) {
    ++done;
    while (!enough) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto stop = [&] {
    enough = true;
    throw std::logic_error("enough");
  };
  EXPECT_THROW(arena.for_each(10'000, until, stop), std::logic_error);
  EXPECT_LT(done, 10'000);
}

/// More than there are hardware threads, too: each body waits until all have come.
TEST(WorkArena, HasAsManyThreadsAsAskedFor) {
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 2;
  WorkArena arena(threads);
  std::atomic<int> come{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  arena.for_each(static_cast<std::size_t>(threads), [&](std::size_t) {
    ++come;
    while (come < threads && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
}

}  // namespace
}  // namespace cputrain::datasets
