#include "system/usage/cpu_seconds.h"

#include <ctime>

namespace cputrain::system {
namespace {

double seconds_of(::clockid_t clock) {
  ::timespec time{};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

double cpu_seconds(pthread_t thread) {
  ::clockid_t clock{};
  return ::pthread_getcpuclockid(thread, &clock) == 0 ? seconds_of(clock) : 0;
}

}  // namespace cputrain::system
