#pragma once

#include "scaling/cells/cells.h"

/// What limits a cell, what it lost, and what a table says as a whole, in words with their numbers.
namespace cputrain::cells {

/// Parts of an epoch from which a wait (for input, for messages, for other ranks) and memory are
/// causes worth naming, in measured and in simulated cells.
inline constexpr double kWaitLimits = 0.1, kMemoryLimits = 0.25;

/// Every parameter moves at least six times in a step, four bytes each: read forward and back, its
/// gradient written and read, its value read and written by the update.
inline constexpr double kLeastParameterBytes = 6 * 4;

/// More than so many times the speed that its CPUs explain, a cell is suspect: the one it is
/// compared with was disturbed or computed in other pieces, or the machine gave it more clock or
/// cache.
inline constexpr double kMostSpeedUp = 1.1;
/// That, of a speed-up divided by what the CPUs explain.
constexpr bool is_suspect(double efficiency) {
  constexpr double kRounding = 1e-12;
  return efficiency > kMostSpeedUp * (1 + kRounding);
}

/// What the range of a simulated figure is of, and what of its assumptions it leaves out.
inline constexpr const char* kSimulatedRange =
    "A simulated range is of random disturbances and, where the platform says that, of the share "
    "of their peak that its cores may reach. It leaves out what is assumed: clock, memory "
    "bandwidth and network of the platform, and what two threads of a core share.";

/// What a predicted figure is made of.
inline constexpr const char* kPredicted =
    "a model of a GPU's instructions and bytes says what it computes, formulas say what sums and "
    "images cost, and nothing was measured.";

/// From this efficiency on, tables print more than 100.0 %.
inline constexpr double kAboveLinear = 1.0005;

/// From the cell's budget and the limits measured beside it: the largest of waiting for input,
/// communication that backward did not hide and waiting for other ranks, where it is a tenth of the
/// epoch or more; `memory bandwidth`, where weights and gradients of `parameters` numbers alone
/// need a quarter of a step to come from memory and go back. The larger of them where both hold,
/// `compute` where neither does. Where the host of a virtual machine took a twentieth of a rank's
/// CPU time or more, that is added. Empty without figures.
CellLimits explain(const Cell&, double parameters);

/// Sentences about the table, of every backend. For each number of threads: the images per rank at
/// which added ranks bring less than half of what they should, where the 95 % interval of the
/// repeats lies below that; or that all of them are shown to pay. A step that is suspect by
/// kMostSpeedUp is called so. Then the split of CPUs into ranks and threads that was quickest, by
/// medians, with what the repeats leave open beside it. Empty where the table cannot say.
std::vector<std::string> remarks(const CellTable&);

/// Time in which ranks could not compute: what they lacked, how much of it, and what to try.
struct LostTime {
  const char* what;  ///< "images", "communication", "balance", "host", "CPUs"
  double share;      ///< 0 to 1
  std::string sentence;
};

/// What a training lost enough of to matter, the most first: waiting for images, for sums that
/// backward did not hide, and for the slowest rank (kWaitLimits of its seconds); CPU time that a
/// host or other threads took (kStolenWorthSaying, kWaitWorthSaying).
std::vector<LostTime> lost_time(const Budget&, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait);

/// What a cell lost; nothing where its budget is not known.
std::vector<LostTime> lost_time_of(const Cell&);

}  // namespace cputrain::cells
