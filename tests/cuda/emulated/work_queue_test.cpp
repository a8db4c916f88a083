#include "emulated/work_queue.h"

#include "emulated/device_fixture.h"

namespace cputrain::emulated {
namespace {

using Queue = OnDevice;

TEST_F(Queue, RunsNothingBeforeSomebodyWaits) {
  WorkQueue queue;
  int runs = 0;
  const auto first = queue.put([&] { ++runs; }, {});
  const auto second = queue.put([&] { ++runs; }, {first});
  EXPECT_EQ(runs, 0);
  queue.run_until(first);
  EXPECT_EQ(runs, 1);
  queue.run_until(second);
  queue.run_until(second);
  EXPECT_EQ(runs, 2);
}

/// a -> b -> d, a -> c -> d in all orders that are legal, and in no other.
TEST_F(Queue, KeepsWhatIsOrdered) {
  std::string seen_bc, seen_cb;
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
      restart({.order = order, .seed = seed});
      WorkQueue queue;
      queue.seed(seed);
      std::string ran;
      const auto a = queue.put([&] { ran += 'a'; }, {});
      const auto b = queue.put([&] { ran += 'b'; }, {a});
      const auto c = queue.put([&] { ran += 'c'; }, {a, nullptr});
      const auto d = queue.put([&] { ran += 'd'; }, {b, c});
      queue.run_until(d);
      ASSERT_TRUE(ran == "abcd" || ran == "acbd") << ran;
      (ran == "abcd" ? seen_bc : seen_cb) = ran;
    }
  }
  EXPECT_EQ(seen_bc, "abcd");
  EXPECT_EQ(seen_cb, "acbd");
}

TEST_F(Queue, ReportsWhatWaitsForEver) {
  WorkQueue queue;
  const auto never = std::make_shared<Work>();  // nobody puts it
  const auto work = queue.put([] {}, {never});
  const auto message = message_of([&] { queue.run_until(work); });
  EXPECT_EQ(message.value_or(""), "streams wait for each other for ever");
}

TEST_F(Queue, DropsTheRestWhenWorkFails) {
  WorkQueue queue;
  int runs = 0;
  const auto first = queue.put([] { throw Fault("it failed"); }, {});
  const auto second = queue.put([&] { ++runs; }, {first});
  EXPECT_EQ(message_of([&] { queue.run_until(second); }).value_or(""), "it failed");
  queue.run_until(second);
  queue.run_all();
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace cputrain::emulated
