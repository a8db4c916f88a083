#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/usage/work_meter.h"

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

/// What is stolen of some CPUs, all if none are named.
PartSinceLast watch_stolen(std::vector<int> cpus);

/// The part, 0 to 1, of the time for which threads wanted a CPU between two readings, in which they
/// waited for one: waited / (ran + waited), of all threads together. A thread that sleeps, or waits
/// for a disk, wants no CPU and does neither; one that spins in a barrier runs. One that began
/// meanwhile counts from its beginning; one that ended does not count. Nothing where no thread ran:
/// the system then does not count (or does not report it).
std::optional<double> waited_part(const std::vector<ThreadState>& before,
                                  const std::vector<ThreadState>& after);

/// A part from which on it is printed.
inline constexpr double kWaitWorthSaying = 0.1;

/// Why threads wait, in words. `crowded`: the ranks have more threads than there are CPUs.
std::string cpu_wait_reason(bool crowded);

/// What the threads of this process wait for a CPU.
PartSinceLast watch_cpu_wait();

}  // namespace cputrain::system
