#include "system/lost_time.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "system/file_system.h"

namespace cputrain::system {
namespace {

std::vector<CpuTicks> cpu_ticks_now() { return cpu_ticks(text_in("/proc/stat")); }

/// "cpu1 user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user.
bool read_line(const std::string& line, CpuTicks& ticks) {
  constexpr std::string_view kWord = "cpu";
  if (!line.starts_with(kWord)) return false;
  std::istringstream fields(line.substr(kWord.size()));
  if (fields.peek() == ' ' || !(fields >> ticks.cpu)) return false;  // the sum of all CPUs
  std::array<double, 8> t{};
  for (double& value : t) {
    if (!(fields >> value)) return false;
  }
  ticks.worked = t[0] + t[1] + t[2] + t[5] + t[6];
  ticks.idle = t[3] + t[4];
  ticks.stolen = t[7];
  return true;
}

}  // namespace

std::vector<CpuTicks> cpu_ticks(std::string_view proc_stat) {
  std::vector<CpuTicks> all;
  std::istringstream lines{std::string(proc_stat)};
  CpuTicks ticks;
  for (std::string line; std::getline(lines, line);) {
    if (read_line(line, ticks)) all.push_back(ticks);
  }
  return all;
}

std::optional<double> stolen_part(const std::vector<CpuTicks>& before,
                                  const std::vector<CpuTicks>& after,
                                  const std::vector<int>& cpus) {
  bool known = false;
  double stolen = 0, wanted = 0;
  for (const CpuTicks& now : after) {
    if (!cpus.empty() && std::ranges::find(cpus, now.cpu) == cpus.end()) continue;
    const auto then = std::ranges::find(before, now.cpu, &CpuTicks::cpu);
    if (then == before.end()) continue;
    known = true;
    // Counters of idle and stolen time may go back a little (proc(5)).
    const double worked = std::max(0.0, now.worked - then->worked);
    const double idle = std::max(0.0, now.idle - then->idle);
    const double lost = std::max(0.0, now.stolen - then->stolen);
    if (worked + lost == 0) continue;
    const double had_work = worked + idle > 0 ? worked / (worked + idle) : 1;
    stolen += lost * had_work;
    wanted += worked + lost * had_work;
  }
  if (!known) return std::nullopt;
  return wanted > 0 ? stolen / wanted : 0;
}

PartSinceLast watch_stolen(std::vector<int> cpus) {
  return since_last(cpu_ticks_now, [cpus = std::move(cpus)](const auto& before, const auto& now) {
    return stolen_part(before, now, cpus);
  });
}

std::string cpu_wait_reason(bool crowded) {
  return crowded ? "more threads than CPUs take turns"
                 : "other work on this machine, more threads than CPUs, or a quota of CPU time";
}

}  // namespace cputrain::system
