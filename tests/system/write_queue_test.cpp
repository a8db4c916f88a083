#include "system/usage/write_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "system/usage/work_meter.h"

namespace cputrain::system {
namespace {

/// Storage that does not answer until it is let go.
class Hanging {
 public:
  std::function<void()> write() {
    return [this] {
      entered_.set_value();
      go_.get_future().wait();
    };
  }
  void wait_until_it_hangs() { entered_.get_future().wait(); }
  void answer() { go_.set_value(); }

 private:
  std::promise<void> entered_, go_;
};

TEST(WriteQueue, WritesAllInOrderOnAThreadOfItsOwn) {
  std::vector<int> order;
  std::atomic<bool> elsewhere = true;
  std::thread::id begun_on, written_on;
  {
    WriteQueue queue([&] { begun_on = std::this_thread::get_id(); });
    for (int i = 0; i < 1000; ++i) {
      queue.add(1, [&, i] {
        order.push_back(i);
        written_on = std::this_thread::get_id();
      });
    }
  }
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(begun_on, written_on);
  EXPECT_NE(written_on, std::this_thread::get_id());
}

TEST(WriteQueue, WhoAsksGoesOnWhileStorageDoesNotAnswer) {
  Hanging storage;
  std::string written;
  WriteQueue queue;
  queue.add(1, storage.write());
  storage.wait_until_it_hangs();
  for (const char letter : std::string("abc")) queue.add(1, [&, letter] { written += letter; });
  queue.wait_for(0.01);
  EXPECT_TRUE(queue.meter().cpu_seconds().has_value());
  EXPECT_EQ(written, "");  // the thread that could change it hangs
  EXPECT_FALSE(queue.is_full());
  storage.answer();
  queue.finish();
  EXPECT_EQ(written, "abc");
  EXPECT_FALSE(queue.meter().cpu_seconds().has_value());
}

TEST(WriteQueue, WhereMemoryIsFullWhoAsksWaitsAndNothingIsLost) {
  Hanging storage;
  int written = 0;
  std::atomic<int> asked = 0;
  WriteQueue queue({}, 10);
  queue.add(1, storage.write());
  storage.wait_until_it_hangs();
  std::thread asks([&] {
    for (int i = 0; i < 20; ++i) {
      queue.add(3, [&] { ++written; });
      ++asked;
    }
  });
  while (!queue.is_full()) std::this_thread::yield();
  EXPECT_EQ(asked, 3);
  queue.post([&] { ++written; });  // never waits
  storage.answer();
  asks.join();
  queue.finish();
  EXPECT_EQ(written, 21);
}

TEST(WriteQueue, APieceThatIsLargerThanMemoryIsWrittenAlone) {
  bool written = false;
  WriteQueue queue({}, 10);
  queue.add(1, [] {});
  queue.add(1000, [&] { written = true; });
  queue.finish();
  EXPECT_TRUE(written);
}

TEST(WriteQueue, AfterAFailureNothingIsWrittenAndAllAreTold) {
  Hanging storage;
  bool written = false;
  WriteQueue queue;
  queue.add(1, storage.write());
  queue.add(1, [] { throw std::runtime_error("no space"); });
  queue.add(1, [&] { written = true; });
  std::promise<int> answer;
  auto answered = answer.get_future();
  queue.post([&written, kept = std::make_shared<std::promise<int>>(std::move(answer))] {
    written = true;
    kept->set_value(1);
  });
  storage.answer();
  EXPECT_THROW(queue.finish(), std::runtime_error);
  EXPECT_THROW(queue.add(1, [] {}), std::runtime_error);
  EXPECT_THROW(answered.get(), std::future_error);  // who waits for it learns of it
  queue.post([&] { written = true; });
  queue.wait_for(10);
  EXPECT_FALSE(written);
}

TEST(WorkMeter, HasTheTimeOfTheThreadThatIsAtWork) {
  WorkMeter meter;
  EXPECT_FALSE(meter.cpu_seconds().has_value());
  {
    const WorkMeter::Busy busy(meter);
    const double before = meter.cpu_seconds().value();
    volatile double work = 1;
    while (meter.cpu_seconds() == before) work = work * 1.0000001;
    EXPECT_GT(meter.cpu_seconds().value(), before);
  }
  EXPECT_FALSE(meter.cpu_seconds().has_value());
}

}  // namespace
}  // namespace cputrain::system
