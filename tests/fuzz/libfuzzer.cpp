// What libFuzzer calls: a fuzzer begins with its seeds, and ends where it has used its CPU time.

#include <signal.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const cputrain::testing::Fuzzer& fuzzer() { return *cputrain::testing::Fuzzer::all().front(); }

/// libFuzzer's own limit is one of the clock on the wall, which says little on a machine that
/// others use, too. It ends in peace at SIGUSR1.
void end_after(long cpu_seconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  const itimerspec once{{}, {cpu_seconds, 0}};
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0 ||
      timer_settime(timer, 0, &once, nullptr) != 0) {
    std::abort();
  }
}

}  // namespace

/// Puts the seeds into the first folder of the command line, which libFuzzer reads inputs from and
/// keeps new ones in.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const auto seeds = fuzzer().seeds();
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path folder = (*argv)[i];
    if (!std::filesystem::is_directory(folder)) continue;
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      std::ofstream(folder / ("seed-" + std::to_string(k)), std::ios::binary) << seeds[k];
    }
    break;
  }
  if (const char* seconds = std::getenv("FUZZ_CPU_SECONDS")) end_after(std::stol(seconds));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzer().takes({reinterpret_cast<const char*>(data), size});
  return 0;
}
