#include "system/usage/work_meter.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

#include "system/file_system.h"

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

std::optional<ThreadState> read_state(const std::filesystem::path& thread) {
  return thread_state(text_in(thread / "stat"), text_in(thread / "schedstat"));
}

/// A turn is counted when it ends, and a wait when it is over: who had no turn at all and could
/// have run at both looks has waited all the time.
double waited_for_cpu(const ThreadState& before, const ThreadState& now, double seconds) {
  const bool wants = before.state == 'R' && now.state == 'R';
  const double ran = now.ran - before.ran;
  if (!now.waited || !before.waited) return wants ? std::max(0.0, seconds - ran) : 0;
  const double waited = *now.waited - *before.waited;
  if (wants && ran == 0 && waited == 0) return seconds;
  return std::clamp(waited, 0.0, seconds);
}

/// Those that lie on disks of this machine and have a device number of their own.
bool hides_its_disk(long kind) {
  constexpr long kZfs = 0x2fc12fc1, kBcachefs = static_cast<long>(0xca451a4e);
  return kind == OVERLAYFS_SUPER_MAGIC || kind == static_cast<long>(BTRFS_SUPER_MAGIC) ||
         kind == kZfs || kind == kBcachefs;
}

long kind_of(const std::filesystem::path& folder) {
  struct statfs about {};
  return ::statfs(folder.c_str(), &about) == 0 ? static_cast<long>(about.f_type) : 0;
}

/// Writes that were completed, and flushes, which older systems do not count. They are fields of
/// Documentation/admin-guide/iostats.rst, behind those that name the disk.
std::uint64_t completed_in(std::istringstream line) {
  constexpr int kWrites = 5, kFlushes = 16;
  std::uint64_t sum = 0, value = 0;
  for (int field = 1; field <= kFlushes && line >> value; ++field) {
    if (field == kWrites || field == kFlushes) sum += value;
  }
  return sum;
}

}  // namespace

std::optional<ThreadState> thread_state(std::string_view stat, std::string_view schedstat) {
  const std::size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  ThreadState found{.name = std::string(stat.substr(begin + 1, end - begin - 1))};
  std::istringstream first{std::string(stat.substr(0, begin))};
  std::istringstream rest{std::string(stat.substr(end + 1))};
  if (!(first >> found.thread) || !(rest >> found.state)) return std::nullopt;
  constexpr int kFaults = 12, kUser = 14;  // fields are counted from 1; a state is the third
  double user = 0, kernel = 0;
  std::string other;
  for (int field = 4; field < kFaults; ++field) rest >> other;
  rest >> found.faults;
  for (int field = kFaults + 1; field < kUser; ++field) rest >> other;
  if (!(rest >> user >> kernel)) return std::nullopt;
  found.ran = (user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::istringstream counted{std::string(schedstat)};
  double ran = 0, waited = 0;
  // A kernel that keeps no such statistics shows zeros.
  if (counted >> ran >> waited && ran + waited > 0) {
    found.ran = 1e-9 * ran;
    found.waited = 1e-9 * waited;
  }
  return found;
}

std::vector<ThreadState> thread_states(const std::string& process) {
  std::vector<ThreadState> all;
  const std::filesystem::path threads = "/proc/" + process + "/task";
  for (const std::string& thread : names_in(threads)) {
    const auto state = read_state(threads / thread);
    if (state) all.push_back(*state);  // one may have ended since it was listed
  }
  return all;
}

std::optional<double> waited_part(const std::vector<ThreadState>& before,
                                  const std::vector<ThreadState>& after) {
  double ran = 0, waited = 0;
  for (const ThreadState& now : after) {
    if (!now.waited) continue;
    const auto then = std::ranges::find(before, now.thread, &ThreadState::thread);
    // Else it is new, or was given the number of one that has ended.
    const bool same = then != before.end() && then->waited && now.ran >= then->ran &&
                      *now.waited >= *then->waited;
    ran += now.ran - (same ? then->ran : 0);
    waited += *now.waited - (same ? *then->waited : 0);
  }
  if (!(ran > 0)) return std::nullopt;
  return waited / (ran + waited);
}

PartSinceLast watch_cpu_wait() {
  return since_last([] { return thread_states("self"); }, waited_part);
}

Shortage shortage_between(const std::vector<ThreadState>& before,
                          const std::vector<ThreadState>& after, double seconds) {
  Shortage shortage;
  for (const ThreadState& now : after) {
    const auto then = std::ranges::find(before, now.thread, &ThreadState::thread);
    if (then == before.end()) continue;
    shortage.cpu = std::max(shortage.cpu, waited_for_cpu(*then, now, seconds));
    shortage.pages = shortage.pages || now.faults > then->faults;
  }
  return shortage;
}

std::optional<double> WorkMeter::cpu_seconds() const {
  const std::lock_guard lock(mutex_);
  return thread_ != 0 ? std::optional(system::cpu_seconds(handle_)) : std::nullopt;
}

bool WorkMeter::is_able() const {
  const std::lock_guard lock(mutex_);
  if (thread_ == 0) return false;
  const auto state = read_state("/proc/self/task/" + std::to_string(thread_));
  return state && state->state == 'R';
}

void WorkMeter::set(int thread) {
  const std::lock_guard lock(mutex_);
  thread_ = thread;
  handle_ = ::pthread_self();
}

DiskWrites::DiskWrites(const std::filesystem::path& folder, const std::filesystem::path& root,
                       std::optional<long> kind) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return;
  std::filesystem::path disk =
      root / fmt::format("sys/dev/block/{}:{}/stat", major(about.st_dev), minor(about.st_dev));
  if (is_present(disk)) {
    counters_ = std::move(disk);
  } else if (hides_its_disk(kind ? *kind : kind_of(folder))) {
    counters_ = root / "proc/diskstats";
  }
}

bool DiskWrites::is_one() const { return counters_.filename() == "stat"; }

std::uint64_t DiskWrites::completed() const {
  std::uint64_t sum = 0;
  std::ifstream lines(counters_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skipped;
    if (!is_one()) fields >> skipped >> skipped >> skipped;
    sum += completed_in(std::move(fields));
  }
  return sum;
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
  return held_memory_of(text_in("/proc/self/status"), text_in("/proc/self/smaps_rollup"));
}

}  // namespace cputrain::system
