#include "system/usage/work_meter.h"

#include <string>

#include "system/lost_time/shortage.h"
#include "system/usage/cpu_seconds.h"

namespace cputrain::system {

std::optional<double> WorkMeter::cpu_seconds() const {
  const std::lock_guard lock(mutex_);
  return thread_ ? std::optional(system::cpu_seconds(thread_->handle)) : std::nullopt;
}

bool WorkMeter::is_able() const {
  const std::lock_guard lock(mutex_);
  return thread_ && state_of_thread("self", thread_->id).state == 'R';
}

void WorkMeter::set(std::optional<Thread> thread) {
  const std::lock_guard lock(mutex_);
  thread_ = thread;
}

}  // namespace cputrain::system
