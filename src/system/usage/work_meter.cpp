#include "system/usage/work_meter.h"

#include "system/usage/cpu_seconds.h"

namespace cputrain::system {

std::optional<double> WorkMeter::cpu_seconds() const {
  const std::lock_guard lock(mutex_);
  return thread_ ? std::optional(system::cpu_seconds(*thread_)) : std::nullopt;
}

void WorkMeter::set(std::optional<pthread_t> thread) {
  const std::lock_guard lock(mutex_);
  thread_ = thread;
}

}  // namespace cputrain::system
