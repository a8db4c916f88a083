#include "system/usage/work_meter.h"

#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "system/lost_time/shortage.h"

namespace cputrain::system {
namespace {

double seconds_of(::clockid_t clock) {
  ::timespec time{};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The figure of a line "Name:  123 kB", in bytes.
std::optional<std::size_t> bytes_after(std::string_view text, const std::string& name) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string found;
    std::size_t kilobytes = 0;
    if (words >> found >> kilobytes && found == name) return kilobytes * 1024;
  }
  return std::nullopt;
}

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

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

double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

double cpu_seconds(pthread_t thread) {
  ::clockid_t clock{};
  return ::pthread_getcpuclockid(thread, &clock) == 0 ? seconds_of(clock) : 0;
}

std::optional<HeldMemory> held_memory_of(std::string_view status, std::string_view rollup) {
  const auto peak = bytes_after(status, "VmHWM:"), resident = bytes_after(rollup, "Rss:");
  const auto own = bytes_after(rollup, "Pss_Anon:"), shared = bytes_after(rollup, "Pss_Shmem:");
  if (!peak || !resident || !own || !shared) return std::nullopt;
  const std::size_t beyond = *peak > *resident ? *peak - *resident : 0;
  return HeldMemory{*peak, *own + *shared + beyond};
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5\n"; }

std::optional<HeldMemory> held_memory() {
  return held_memory_of(text_of_file("/proc/self/status"), text_of_file("/proc/self/smaps_rollup"));
}

}  // namespace cputrain::system
