#include "checkpoint/writer_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <new>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/in_a_child.h"

namespace cputrain::checkpoint {
namespace {

TEST(WriterThread, WritesOneAfterTheOtherOnAThreadOfItsOwn) {
  WriterThread writer;
  std::vector<int> order;
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> elsewhere = true;
  for (int i = 0; i < 50; ++i) {
    writer.start([&, i] {
      order.push_back(i);
      if (std::this_thread::get_id() == caller) elsewhere = false;
    });
  }
  const WriterState state = writer.wait();
  EXPECT_EQ(state.written, 50);
  EXPECT_FALSE(state.failure);
  EXPECT_TRUE(elsewhere);
  EXPECT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WriterThread, IsBusyUntilItHasWritten) {
  WriterThread writer;
  EXPECT_FALSE(writer.busy());
  std::promise<void> go;
  writer.start([&] { go.get_future().wait(); });
  EXPECT_TRUE(writer.busy());
  go.set_value();
  EXPECT_EQ(writer.wait().written, 1);
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(writer.wait().written, 1);  // at once
}

TEST(WriterThread, WhoWaitsLearnsThatItGetsOn) {
  WriterThread writer;
  std::atomic<bool> told = false;
  writer.start([&] {
    volatile double work = 1;
    while (!told) work = work * 1.0000001;
  });
  EXPECT_EQ(writer.wait([&] { told = true; }).written, 1);
  EXPECT_TRUE(told);
}

TEST(WriterThread, AFailureIsThatOfTheLast) {
  WriterThread writer;
  writer.start([] { fail(ExitCode::output, "no space"); });
  writer.start([] {});
  EXPECT_FALSE(writer.wait().failure);
  writer.start([] { fail(ExitCode::output, "no space again"); });
  EXPECT_EQ(writer.wait().failure, "no space again");
  writer.start([] { throw std::bad_alloc(); });
  const WriterState state = writer.wait();
  EXPECT_TRUE(state.failure.has_value());
  EXPECT_EQ(state.written, 1);
}

TEST(WriterThread, ItsEndWaitsForAllThatWasStarted) {
  int done = 0;
  {
    WriterThread writer;
    for (int i = 0; i < 20; ++i) writer.start([&] { ++done; });
  }
  EXPECT_EQ(done, 20);
}

TEST(WriterThread, ItsThreadGoesBehindOthersAndIsBoundByItsMaker) {
  std::thread::id begun_on, written_on;
  int nice = 0;
  WriterThread writer([&] { begun_on = std::this_thread::get_id(); });
  writer.start([&] {
    written_on = std::this_thread::get_id();
    nice = ::getpriority(PRIO_PROCESS, 0);  // Linux: of the thread
  });
  writer.wait();
  EXPECT_EQ(begun_on, written_on);
  constexpr int kLowest = 19;
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_TRUE(nice > own || own == kLowest) << nice << " " << own;
}

// A process that was made nice itself stays before this thread, as far as nice values go.
TEST(WriterThread, ItsThreadIsBehindThoseOfANiceProcessToo) {
  for (const auto& [nice_of_process, expected] : {std::pair{15, 17}, {18, 19}, {19, 19}}) {
    if (::getpriority(PRIO_PROCESS, 0) > nice_of_process) continue;
    const int nice = testing::in_a_child([&, process = nice_of_process] {
      ::setpriority(PRIO_PROCESS, 0, process);
      WriterThread writer;
      int found = 0;
      writer.start([&] { found = ::getpriority(PRIO_PROCESS, 0); });
      writer.wait();
      return found;
    });
    EXPECT_EQ(nice, expected);
  }
}

// Two clocks of the same thread.
TEST(WriterThread, TellsTheTimeThatItsThreadTook) {
  WriterThread writer;
  double inside = 0;
  writer.start([&] {
    timespec time{};
    volatile double work = 1;
    do {
      for (int i = 0; i < 1000; ++i) work = work * 1.0000001;
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      inside = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    } while (inside < 0.02);
  });
  const double first = writer.wait().cpu_seconds;
  EXPECT_GE(first, inside);
  writer.start([] {});
  EXPECT_GE(writer.wait().cpu_seconds, first);
}

}  // namespace
}  // namespace cputrain::checkpoint
