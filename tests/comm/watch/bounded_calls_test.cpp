#include "comm/watch/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "system/clock.h"

namespace cputrain::watch {
namespace {

TEST(BoundedCalls, AreWaitedFor) {
  BoundedCalls calls;
  int made = 0;
  for (int i = 0; i < 3; ++i) calls.make([&made] { ++made; }, 60);
  EXPECT_EQ(made, 3);
}

TEST(BoundedCalls, OneThatHangsKeepsNobody) {
  const system::Stopwatch watch;
  const auto hangs = std::make_shared<std::atomic<bool>>(true);
  const auto made = std::make_shared<std::atomic<bool>>(false);
  BoundedCalls calls;
  calls.make([hangs] { hangs->wait(true); }, 0.01);
  calls.make([made] { *made = true; }, 0.01);
  EXPECT_FALSE(*made);  // left out
  EXPECT_LT(watch.seconds(), 30);
  *hangs = false;
  hangs->notify_all();
  while (!*made) calls.make([made] { *made = true; }, 60);
}

}  // namespace
}  // namespace cputrain::watch
