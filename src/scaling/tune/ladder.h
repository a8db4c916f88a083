#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scaling/tune/climb.h"

/// What was measured of a ladder of sizes, and which size that advises.
namespace cputrain::tune {

struct MemoryBytes {
  std::size_t rank = 0;  ///< on the rank with most
  std::size_t node = 0;  ///< all ranks of the node with most
};

/// Parts, 0 to 1, of a rank's time, the rank's that lost most; nothing where not known.
struct LostTime {
  std::optional<double> cpu_wait{};  ///< system/lost_time/cpu_wait.h
  std::optional<double> stolen{};    ///< system/lost_time/stolen_time.h; in rounds that count
};

/// A size that was measured.
struct Rung {
  int value = 0;
  /// The one figure for its speed, 0 where it was not measured: of the first size the median of its
  /// rounds, else that of the size it was compared with, times 1 + gain. So speeds differ by what
  /// was found in rounds in which both took turns, whatever the machine did between contests.
  double images_per_second = 0;
  std::vector<double> rounds{};           ///< images/s, in its first contest
  MemoryBytes planned{};                  ///< as --dry-run has it, but for decoded images
  std::optional<MemoryBytes> measured{};  ///< resident at the most; of host memory alone
  std::optional<int> against{};           ///< the best rung when this one was tried
  std::optional<Gain> gain{};             ///< over that one
  LostTime lost{};                        ///< meanwhile
};

struct Ladder {
  std::string flag;         ///< whose values rungs are: "micro-batch"
  std::vector<Rung> rungs;  ///< in the order in which they were tried
  Climb climb;
  std::string no_room{};      ///< why the next rung was not measured, where there was none
  int usual = 0;              ///< what a training has without the flag
  bool larger_alone = false;  ///< a smaller one than usual is no advice
  bool crowded = false;       ///< ranks have more threads than there are CPUs

  int largest() const;  ///< that was tried
  const Rung& best() const { return *find(climb.best); }
  /// Null where it was not measured.
  const Rung* find(int value) const;
  /// Whether what advised() needs was measured.
  bool can_advise() const;
  /// The best size's over the usual one; nothing where the latter was not measured.
  std::optional<Gain> gain_over_usual() const;
  /// The best size, where it pays against the usual one, or where that has no room; else nothing:
  /// the flag is to be left out.
  std::optional<int> advised() const;
};

/// Where enough time was lost to say so: "threads waited 23 % of their time for a CPU"; else empty.
std::string lost_text(const LostTime&);
/// The same text for the size that met most of it, with its name.
std::string most_lost_text(const Ladder&);

}  // namespace cputrain::tune
