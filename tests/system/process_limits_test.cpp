#include "system/limits/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>

#include "core/error.h"
#include "system/print.h"
#include "tests/support/in_a_child.h"

namespace cputrain::system {
namespace {

void set_limit(decltype(RLIMIT_AS) which, rlim_t value) {
  const struct rlimit limit { value, value };
  ::setrlimit(which, &limit);
}

TEST(ProcessLimits, AFewThreadsCanBeHad) { EXPECT_NO_THROW(require_threads(8)); }

// 400 stacks of 8 MiB (or whatever `ulimit -s` says) do not fit into 1 GiB of addresses; 8 do.
TEST(ProcessLimits, ThreadsWithoutRoomForTheirStacksAreRefusedWithTheLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need terabytes of addresses";
#endif
  const int code = testing::in_a_child([] {
    set_limit(RLIMIT_AS, rlim_t{1} << 30);
    try {
      require_threads(8);
      require_threads(400);
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool says = text.find("needs 400") != text.npos &&
                        text.find("ulimit -v 1048576") != text.npos &&
                        text.find("--threads") != text.npos;
      return says && error.code() == ExitCode::usage ? 3 : 4;
    }
    return 5;
  });
  EXPECT_EQ(code, 3);
}

/// 1 where the process, with this limit if one is named, cannot have the memory; else 0.
int refuses(const MemoryToCome& memory, std::optional<decltype(RLIMIT_AS)> limited) {
  return testing::in_a_child([&] {
    if (limited) set_limit(*limited, rlim_t{1} << 30);
    try {
      require_threads(1, memory);
    } catch (const Error& error) {
      return error.code() == ExitCode::usage ? 1 : 2;
    }
    return 0;
  });
}

// What others see, too, is no data of this process, but lies at its addresses.
TEST(ProcessLimits, MemoryCountsForItsOwnLimits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need terabytes of addresses";
#endif
  constexpr std::size_t kMuch = std::size_t{2} << 30, kLittle = std::size_t{64} << 20;
  EXPECT_EQ(refuses({.own = kMuch}, RLIMIT_AS), 1);
  EXPECT_EQ(refuses({.own = kMuch}, RLIMIT_DATA), 1);
  EXPECT_EQ(refuses({.shared = kMuch}, RLIMIT_AS), 1);
  EXPECT_EQ(refuses({.shared = kMuch}, RLIMIT_DATA), 0);
  EXPECT_EQ(refuses({.own = kLittle, .shared = kLittle}, RLIMIT_AS), 0);
  EXPECT_EQ(refuses({.own = kLittle, .shared = kMuch}, RLIMIT_DATA), 0);
}

// Without a limit nothing is asked for: a system that promises no more than it has would refuse
// what ranks share as often as there are ranks.
TEST(ProcessLimits, WithoutALimitNoMemoryIsAskedFor) {
  if (limits_text().find("ulimit -v") != std::string::npos ||
      limits_text().find("ulimit -d") != std::string::npos) {
    GTEST_SKIP() << "limits: " << limits_text();
  }
  constexpr std::size_t kMoreThanAddresses = std::size_t{1} << 60;
  EXPECT_EQ(refuses({.own = kMoreThanAddresses, .shared = kMoreThanAddresses}, std::nullopt), 0);
}

TEST(ProcessLimits, NamesThemAsAShellDoes) {
  const int code = testing::in_a_child([] {
    set_limit(RLIMIT_NPROC, 12345);
    set_limit(RLIMIT_DATA, rlim_t{1} << 40);
    const std::string text = limits_text();
    return text.find("ulimit -d 1073741824, ulimit -u 12345") != text.npos ? 3 : 4;
  });
  EXPECT_EQ(code, 3);
}

TEST(LogPace, IsDueEveryThirtySeconds) {
  double now = 100;
  LogPace pace([&now] { return now; });
  std::string due;
  for (; now < 200; now += 10) due += pace.due() ? 'x' : '.';
  EXPECT_EQ(due, "...x..x..x");
}

}  // namespace
}  // namespace cputrain::system
