#include "system/lost_time/cpu_wait.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/number_in.h"

namespace cputrain::system {
namespace {

/// A thread may end between being listed and being read.
std::vector<ThreadTimes> thread_times_now() {
  std::vector<ThreadTimes> all;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/task", error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const auto thread = number_in<int>(entry->path().filename().string());
    std::ifstream file(entry->path() / "schedstat");
    std::stringstream text;
    text << file.rdbuf();
    const auto times = thread ? thread_times(*thread, text.view()) : std::nullopt;
    if (times) all.push_back(*times);
    entry.increment(error);
  }
  return all;
}

}  // namespace

std::optional<ThreadTimes> thread_times(int thread, std::string_view schedstat) {
  std::istringstream fields{std::string(schedstat)};
  ThreadTimes times{.thread = thread};
  if (!(fields >> times.ran >> times.waited)) return std::nullopt;
  if (times.ran < 0 || times.waited < 0) return std::nullopt;
  return times;
}

std::optional<double> waited_part(const std::vector<ThreadTimes>& before,
                                  const std::vector<ThreadTimes>& after) {
  double ran = 0, waited = 0;
  for (const ThreadTimes& now : after) {
    const auto found = std::ranges::find(before, now.thread, &ThreadTimes::thread);
    ThreadTimes then = found == before.end() ? ThreadTimes{} : *found;
    // Another thread that was given the number of one that has ended.
    if (now.ran < then.ran || now.waited < then.waited) then = {};
    ran += now.ran - then.ran;
    waited += now.waited - then.waited;
  }
  if (!(ran > 0)) return std::nullopt;
  return waited / (ran + waited);
}

CpuWait::CpuWait() : before_(thread_times_now()) {}

std::optional<double> CpuWait::part_since_last() {
  std::vector<ThreadTimes> now = thread_times_now();
  const auto part = waited_part(before_, now);
  before_ = std::move(now);
  return part;
}

}  // namespace cputrain::system
