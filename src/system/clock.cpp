#include "system/clock.h"

namespace cputrain::system {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cputrain::system
