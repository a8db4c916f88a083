#include "core/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/error.h"
#include "core/log_pace.h"
#include "support/in_a_child.h"

namespace cputrain {
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
  const int code = in_a_child([] {
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

TEST(ProcessLimits, NamesThemAsAShellDoes) {
  const int code = in_a_child([] {
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
}  // namespace cputrain
