#include "system/lost_time/shortage.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cputrain::system {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<ThreadState> read_state(const std::filesystem::path& thread) {
  return thread_state(text_of(thread / "stat"), text_of(thread / "schedstat"));
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

ThreadState state_of_thread(const std::string& process, int thread) {
  const auto folder = std::filesystem::path("/proc") / process / "task" / std::to_string(thread);
  return read_state(folder).value_or(ThreadState{});
}

std::vector<ThreadState> thread_states(const std::string& process) {
  std::vector<ThreadState> all;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + process + "/task", error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const auto state = read_state(entry->path());
    if (state) all.push_back(*state);  // one may have ended since it was listed
    entry.increment(error);
  }
  return all;
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

}  // namespace cputrain::system
