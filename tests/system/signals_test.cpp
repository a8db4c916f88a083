#include "system/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <thread>

#include "system/output.h"

namespace cputrain::system {
namespace {

using std::chrono::milliseconds;

/// A process with a SignalWatch, and what it shares with this one.
class Watched {
 public:
  struct Shared {
    std::atomic<bool> ready = false, held = false;
  };

  explicit Watched(const std::function<void(SignalWatch&, Shared&)>& work)
      : shared_(new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    child_ = ::fork();
    if (child_ != 0) return;
    block_signals();
    SignalWatch watch;
    work(watch, *shared_);
    ::_exit(1);
  }
  ~Watched() { ::munmap(shared_, sizeof(Shared)); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void send(int signal) const { ::kill(child_, signal); }
  void wait_until_ready() const {
    while (!shared_->ready) std::this_thread::sleep_for(milliseconds(1));
  }
  bool held() const { return shared_->held; }
  /// The exit code; -1 where it did not end within the time, and is killed.
  int end_within(std::chrono::seconds time) const {
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + time;
    while (::waitpid(child_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, &status, 0);
        return -1;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  }

 private:
  Shared* shared_;
  pid_t child_;
};

// A signal finds a moment between calls in which no process may end, and never one of them.
TEST(SignalWatch, NoProcessEndsWhileItIsHeld) {
  for (int i = 0; i < 8; ++i) {
    const Watched process([](SignalWatch& watch, Watched::Shared& shared) {
      const auto spin = [](int times) {
        for (int n = 0; n < times; ++n) std::atomic_signal_fence(std::memory_order_seq_cst);
      };
      for (;;) {
        {
          const auto held = watch.hold();
          shared.held = true;
          shared.ready = true;
          spin(20'000);
          shared.held = false;
        }
        spin(10'000);
      }
    });
    process.wait_until_ready();
    std::this_thread::sleep_for(std::chrono::microseconds(137 * i));
    process.send(i % 2 ? SIGTERM : SIGUSR1);
    EXPECT_EQ(process.end_within(std::chrono::seconds(60)), 75);
    EXPECT_FALSE(process.held()) << i;
  }
}

TEST(SignalWatch, ASignalIsRememberedUntilItIsFree) {
  const Watched process([](SignalWatch& watch, Watched::Shared& shared) {
    {
      const auto held = watch.hold();
      shared.held = true;
      shared.ready = true;
      std::this_thread::sleep_for(milliseconds(700));
      shared.held = false;
    }
    std::this_thread::sleep_for(std::chrono::seconds(60));
  });
  process.wait_until_ready();
  process.send(SIGINT);
  std::this_thread::sleep_for(milliseconds(100));
  process.send(SIGTERM);  // the first counts
  EXPECT_EQ(process.end_within(std::chrono::seconds(30)), 130);
  EXPECT_FALSE(process.held());
}

// A rank that starts MPI for a sweep that was killed.
TEST(SignalWatch, WhatItWorksForIsLookedAfterWhileHeld) {
  const Watched process([](SignalWatch& watch, Watched::Shared&) {
    const auto held = watch.hold();
    watch.end_when([] { return true; });
    std::this_thread::sleep_for(std::chrono::seconds(60));
  });
  EXPECT_EQ(process.end_within(std::chrono::seconds(30)), 75);
}

TEST(SignalWatch, SeveralThingsAreLookedAfterEachWithItsCode) {
  for (const ExitCode code : {ExitCode::stopped, ExitCode::unanswered}) {
    const Watched process([code](SignalWatch& watch, Watched::Shared&) {
      watch.end_when([code] { return code == ExitCode::stopped; });
      watch.end_when({}, ExitCode::internal);
      watch.end_when([code] { return code == ExitCode::unanswered; }, ExitCode::unanswered);
      std::this_thread::sleep_for(std::chrono::seconds(60));
    });
    EXPECT_EQ(process.end_within(std::chrono::seconds(30)), static_cast<int>(code));
  }
}

// `mpirun ... | tee`: Ctrl-C ends both, while ranks save what they have.
TEST(SignalWatch, WhatIsSavedAfterASignalOutlivesWhatItWorksFor) {
  for (const bool ends : {true, false}) {
    const Watched process([ends](SignalWatch& watch, Watched::Shared& shared) {
      std::atomic<bool> gone = false;
      watch.end_when([&gone] { return gone.load(); }, ExitCode::unanswered);
      const auto armed = watch.arm([&gone] { gone = true; });
      shared.ready = true;
      while (!gone) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(500));  // the signal thread looks ten times a second
      shared.held = true;                              // saved
      if (ends) ::_exit(watch.stop_code());
      std::this_thread::sleep_for(std::chrono::seconds(100));
    });
    process.wait_until_ready();
    process.send(SIGTERM);
    EXPECT_EQ(process.end_within(std::chrono::seconds(60)), ends ? 75 : 76);
    EXPECT_TRUE(process.held());
  }
}

// A step ends, and its checkpoint is taken, while the function still writes.
TEST(SignalWatch, ArmedItAsksForAStopAndMeanwhileCallsTheFunctionOnSigterm) {
  const auto work = [](SignalWatch& watch, Watched::Shared& shared) {
    std::atomic<bool> called = false, stopped = false;
    {
      const auto armed = watch.arm([&] {
        while (!stopped) std::this_thread::sleep_for(milliseconds(1));
        called = true;
      });
      shared.ready = true;
      while (!watch.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
      stopped = true;
    }
    ::_exit(watch.stop_code() + (called ? 100 : 0));
  };
  for (const auto& [signal, code] :
       {std::pair{SIGTERM, 175}, {SIGHUP, 175}, {SIGUSR1, 75}, {SIGINT, 130}}) {
    const Watched process(work);
    process.wait_until_ready();
    process.send(signal);
    EXPECT_EQ(process.end_within(std::chrono::seconds(30)), code);
  }
}

// What SIGTERM calls may wait for storage that does not answer.
TEST(SignalWatch, SignalsAreAnsweredWhileTheFunctionHangs) {
  const Watched process([](SignalWatch& watch, Watched::Shared& shared) {
    const auto armed = watch.arm([&] {
      shared.held = true;
      std::this_thread::sleep_for(std::chrono::seconds(100));
    });
    shared.ready = true;
    while (watch.came() < 2) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(std::chrono::seconds(100));
  });
  process.wait_until_ready();
  process.send(SIGTERM);
  while (!process.held()) std::this_thread::sleep_for(milliseconds(1));
  process.send(SIGINT);
  EXPECT_EQ(process.end_within(std::chrono::seconds(60)), 130);
}

// `2>&1 | less`, or a terminal that Ctrl-S holds: "Ctrl-C again ends at once" is a line, too.
TEST(SignalWatch, ASecondInterruptEndsItWhereNobodyReadsStandardError) {
  const Watched process([](SignalWatch& watch, Watched::Shared& shared) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) ::_exit(2);
    ::fcntl(pipe[1], F_SETFL, O_NONBLOCK);
    while (::write(pipe[1], ".", 1) == 1) continue;
    ::fcntl(pipe[1], F_SETFL, 0);
    begin_output();
    const auto armed = watch.arm([] {});
    shared.ready = true;
    while (!watch.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    shared.held = true;
    std::this_thread::sleep_for(std::chrono::seconds(100));
  });
  process.wait_until_ready();
  process.send(SIGINT);
  while (!process.held()) std::this_thread::sleep_for(milliseconds(1));
  process.send(SIGINT);
  EXPECT_EQ(process.end_within(std::chrono::seconds(60)), 130);
}

TEST(SignalWatch, WhoDisarmsWaitsForTheFunction) {
  const Watched process([](SignalWatch& watch, Watched::Shared& shared) {
    std::atomic<bool> begun = false;
    {
      const auto armed = watch.arm([&] {
        begun = true;
        std::this_thread::sleep_for(milliseconds(300));
        shared.held = true;
      });
      shared.ready = true;
      while (!begun) std::this_thread::sleep_for(milliseconds(1));
    }
    ::_exit(shared.held && watch.stop_requested() ? watch.stop_code() : 1);
  });
  process.wait_until_ready();
  process.send(SIGTERM);
  EXPECT_EQ(process.end_within(std::chrono::seconds(60)), 75);
}

}  // namespace
}  // namespace cputrain::system
