#include "system/usage/cpu_seconds.h"

#include <ctime>

namespace cputrain::system {

double cpu_seconds() {
  ::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace cputrain::system
