#include "system/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <thread>

#include "system/print.h"

namespace cputrain::system {
namespace {

/// A process whose standard output and error are pipes that nobody reads until they are asked for.
class Printing {
 public:
  enum class Streams { two, one };

  explicit Printing(const std::function<void(std::atomic<bool>& ready)>& work,
                    Streams streams = Streams::two)
      : ready_(new (::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<bool>(false)) {
    for (auto& pipe : pipes_) {
      if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::bad_alloc();
      ::fcntl(pipe[1], F_SETPIPE_SZ, 4096);
    }
    child_ = ::fork();
    if (child_ == 0) {
      ::signal(SIGPIPE, SIG_IGN);
      ::dup2(pipes_[0][1], STDOUT_FILENO);
      ::dup2(pipes_[streams == Streams::one ? 0 : 1][1], STDERR_FILENO);
      close_pipes();
      begin_output();
      work(*ready_);
      ::_exit(0);
    }
    for (const auto& pipe : pipes_) ::close(pipe[1]);
  }
  ~Printing() {
    close_readers();
    ::munmap(ready_, sizeof *ready_);
  }
  Printing(const Printing&) = delete;
  Printing& operator=(const Printing&) = delete;

  /// False where it does not come to that, which a minute is enough for.
  bool becomes_ready() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!*ready_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *ready_;
  }

  void close_readers() {
    for (auto& pipe : pipes_) {
      if (pipe[0] >= 0) ::close(pipe[0]);
      pipe[0] = -1;
    }
  }

  /// All that comes, of both at once.
  std::array<std::string, 2> read_all() const {
    std::array<std::string, 2> texts;
    std::array<pollfd, 2> streams{pollfd{pipes_[0][0], POLLIN, 0}, pollfd{pipes_[1][0], POLLIN, 0}};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
      ::poll(streams.data(), streams.size(), -1);
      for (std::size_t i = 0; i < streams.size(); ++i) {
        if (streams[i].fd < 0 || streams[i].revents == 0) continue;
        std::array<char, 65536> bytes;
        const ssize_t count = ::read(streams[i].fd, bytes.data(), bytes.size());
        if (count <= 0) streams[i].fd = -1;
        texts[i].append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      }
    }
    return texts;
  }

  /// The exit code; -1 where it does not end within a minute, and is killed.
  int end() const {
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (::waitpid(child_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) ::kill(child_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  void close_pipes() const {
    for (const auto& pipe : pipes_) {
      ::close(pipe[0]);
      ::close(pipe[1]);
    }
  }

  std::atomic<bool>* ready_;
  std::array<std::array<int, 2>, 2> pipes_{};
  pid_t child_;
};

std::string line(int i) {
  std::string text = std::to_string(i);
  return text.insert(0, 63 - text.size(), '.') + "\n";
}

constexpr int kLines = 50'000;  // of 64 bytes: three times what may wait

std::string lines(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += line(i);
  return all;
}

TEST(Output, LinesKeepNobodyWaitingAndWhatIsDroppedIsTold) {
  const Printing process([](std::atomic<bool>& ready) {
    for (int i = 0; i < kLines; ++i) put(stdout, line(i));
    tell("a warning finds a place");
    ready = true;
    flush_output();
  });
  ASSERT_TRUE(process.becomes_ready());
  const auto [output, error] = process.read_all();
  const int came = static_cast<int>(output.size() / 64);
  EXPECT_EQ(output, lines(came));
  EXPECT_GE(output.size(), kMostLines - 64);
  EXPECT_LT(came, kLines);
  EXPECT_EQ(error, "a warning finds a place\nwarning: " + std::to_string(kLines - came) +
                       " lines were dropped, as nobody read standard output\n");
  EXPECT_EQ(process.end(), 0);
}

// Lines that come while it is told how many are missing are none of these: one word for each gap.
TEST(Output, LinesThatKeepComingComeAgainOnceTheyAreRead) {
  constexpr int kGaps = 5;
  const Printing process([](std::atomic<bool>& ready) {
    ::alarm(60);  // so that a failure ends
    int put_in_all = 0;
    for (int gap = 0; gap < kGaps; ++gap) {
      while (put(stdout, line(put_in_all++))) continue;
      ready = true;
      while (!put(stdout, line(put_in_all++))) continue;
    }
    tell("{} were put", put_in_all);
    ::_exit(flush_output(30, 30) ? 5 : 6);
  });
  ASSERT_TRUE(process.becomes_ready());
  const auto [output, error] = process.read_all();
  EXPECT_EQ(process.end(), 5);
  std::size_t dropped = 0, all = 0;
  int gaps = 0;
  std::istringstream words(error);
  for (std::string word; std::getline(words, word);) {
    if (word.ends_with(" were put")) all = std::stoul(word);
    if (!word.starts_with("warning: ")) continue;
    dropped += std::stoul(word.substr(9));
    ++gaps;
  }
  EXPECT_EQ(gaps, kGaps);
  EXPECT_EQ(output.size() / 64 + dropped, all);
}

// The order in which they were written, with the word in it where lines are missing.
TEST(Output, BothStreamsKeepTheirOrderInOnePlace) {
  const Printing process(
      [](std::atomic<bool>& ready) {
        for (int i = 0; i < 1000; ++i) put(i % 3 == 0 ? stderr : stdout, line(i));
        ready = true;
        flush_output();
      },
      Printing::Streams::one);
  ASSERT_TRUE(process.becomes_ready());
  EXPECT_EQ(process.read_all()[0], lines(1000));
}

TEST(Output, ErrorsFindAPlaceBehindLines) {
  const Printing process(
      [](std::atomic<bool>& ready) {
        for (int i = 0; i < kLines; ++i) put(stdout, line(i));
        tell("cputrain: why it ends");
        ready = true;
        flush_output();
      },
      Printing::Streams::one);
  ASSERT_TRUE(process.becomes_ready());
  EXPECT_NE(process.read_all()[0].find("\ncputrain: why it ends\n"), std::string::npos);
}

TEST(Output, ResultsWaitForTheirReaderAndAreWhole) {
  const Printing process([](std::atomic<bool>& ready) {
    std::thread([&ready] {
      while (!waits_for_reader()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ready = true;
    }).detach();
    for (int i = 0; i < kLines; ++i) put(stdout, line(i), Worth::result);
    ::_exit(flush_output() && !waits_for_reader() ? 5 : 6);
  });
  ASSERT_TRUE(process.becomes_ready());
  const auto [output, error] = process.read_all();
  EXPECT_TRUE(output == lines(kLines)) << output.size();
  EXPECT_EQ(error, "");
  EXPECT_EQ(process.end(), 5);
}

TEST(Output, NothingKeepsAProcessThatIsAskedToEnd) {
  const Printing process([](std::atomic<bool>& ready) {
    hurry_output();
    for (int i = 0; i < kLines; ++i) {
      if (put(stdout, line(i), Worth::result)) continue;
      ready = true;
      ::_exit(flush_output() ? 6 : 5);
    }
  });
  EXPECT_TRUE(process.becomes_ready());
  EXPECT_EQ(process.end(), 5);
}

TEST(Output, AReaderThatHasGoneIsAFailureAndNoWait) {
  Printing process([](std::atomic<bool>& ready) {
    put(stdout, "first", Worth::result);
    ready = true;
    for (;;) {
      if (!put(stdout, line(0), Worth::result)) ::_exit(flush_output() ? 6 : 5);
    }
  });
  ASSERT_TRUE(process.becomes_ready());
  process.close_readers();
  EXPECT_EQ(process.end(), 5);
}

TEST(Output, BarsAreLeftOutWithoutAWord) {
  const Printing process([](std::atomic<bool>& ready) {
    for (int i = 0; i < kLines; ++i) put(stdout, "\r" + line(i).substr(0, 60), Worth::redrawn);
    put(stdout, "\rlast\n");
    ready = true;
    flush_output();
  });
  ASSERT_TRUE(process.becomes_ready());
  const auto [output, error] = process.read_all();
  EXPECT_LT(output.size(), 4 * kMostRedrawn);
  EXPECT_TRUE(output.ends_with("\rlast\n"));
  EXPECT_EQ(error, "");
}

TEST(Output, WhatWasPrintedBeforeAnEndAtOnceIsThere) {
  const Printing process([](std::atomic<bool>&) {
    put(stdout, "result\n", Worth::result);
    tell("error");
    end_at_once(7);
  });
  EXPECT_EQ(process.end(), 7);
  EXPECT_EQ(process.read_all(), (std::array<std::string, 2>{"result\n", "error\n"}));
}

// A library may end the process by exit().
TEST(Output, WhatWasPrintedBeforeAnExitIsThere) {
  const Printing process([](std::atomic<bool>&) {
    put(stdout, lines(kLines), Worth::result);  // more than the pipe takes
    std::exit(0);
  });
  EXPECT_EQ(process.read_all()[0], lines(kLines));
}

}  // namespace
}  // namespace cputrain::system
