#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Time that looks like slow work to a rank's own clock, so that a measurement which does not ask
/// for it may have measured something else: what a virtual machine's host spends on other guests,
/// and what threads wait for a CPU on a machine that does more than it has CPUs for.
namespace cputrain::system {

/// What one hardware thread did since the machine started, in ticks of /proc/stat (proc(5)), of
/// which a second has a hundred.
struct CpuTicks {
  int cpu = 0;
  double worked = 0;  ///< for processes and the kernel
  double idle = 0;    ///< and waiting for disks
  double stolen = 0;  ///< there was work, and the host ran something else

  bool operator==(const CpuTicks&) const = default;
};

/// Parses a text such as /proc/stat. Lines that are no "cpu<n> ..." are skipped.
std::vector<CpuTicks> cpu_ticks(std::string_view proc_stat);

/// The part, 0 to 1, that was stolen of the time in which `cpus` had work between two readings; all
/// CPUs if none are named. Of a CPU that idled, as much counts as it worked of the time it had: the
/// kernel also counts how late the host wakes an idle CPU, which no work waited for. So it is
/// rather too little than too much. Nothing where no such CPU is in both readings.
std::optional<double> stolen_part(const std::vector<CpuTicks>& before,
                                  const std::vector<CpuTicks>& after, const std::vector<int>& cpus);

/// A part from which on it is printed.
inline constexpr double kStolenWorthSaying = 0.05;

/// Asks for the part, 0 to 1, of the time since it was made or last called; nothing where the
/// system does not report it.
using PartSinceLast = std::function<std::optional<double>()>;

/// `part_of` two readings, the last one and the next.
template <class Read, class PartOf>
PartSinceLast since_last(Read read, PartOf part_of) {
  return [read, part_of, before = read()]() mutable {
    auto now = read();
    const auto last = std::exchange(before, std::move(now));
    return part_of(last, before);
  };
}

/// What is stolen of some CPUs, all if none are named.
PartSinceLast watch_stolen(std::vector<int> cpus);

/// A part from which on it is printed.
inline constexpr double kWaitWorthSaying = 0.1;

/// Why threads wait, in words. `crowded`: the ranks have more threads than there are CPUs.
std::string cpu_wait_reason(bool crowded);

}  // namespace cputrain::system
