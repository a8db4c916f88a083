#pragma once

#include <optional>
#include <string_view>
#include <vector>

/// Time that a virtual machine's host spends on other guests. On a rank's own clock it looks like
/// slow work, so a measurement that does not ask for it may have measured the host.
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

/// What was stolen of some CPUs, all if none are named, since the last question.
class StolenTime {
 public:
  explicit StolenTime(std::vector<int> cpus);
  /// The part, 0 to 1, since construction or the last call; nothing where the system does not
  /// report it.
  std::optional<double> part_since_last();

 private:
  std::vector<int> cpus_;
  std::vector<CpuTicks> before_;
};

}  // namespace cputrain::system
