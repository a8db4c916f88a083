#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/error.h"

namespace cputrain::cpu::teams_test {
namespace {

/// Run by ctest with OMP_DYNAMIC=true, too, on machines that are busy.
TEST(Teams, HaveAsManyThreadsAsAreSaid) {
  for (const int threads : {1, 2, 5}) {
    const ThreadCount scope(threads);
    EXPECT_EQ(team_size(), threads);
  }
}

/// Run by ctest with OMP_THREAD_LIMIT=2. Nobody planned with it here, as a program might not.
TEST(Teams, ThatAreSmallerAreRefusedBeforeTheLibraryWaitsForThem) {
  if (std::getenv("OMP_THREAD_LIMIT") == nullptr) GTEST_SKIP() << "OMP_THREAD_LIMIT is not set";
  EXPECT_NO_THROW(make_cpu_backend(2, {}));
  try {
    make_cpu_backend(3, {});
    FAIL() << "three threads were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("2 of the 3 threads"), std::string::npos);
  }
}

}  // namespace
}  // namespace cputrain::cpu::teams_test
