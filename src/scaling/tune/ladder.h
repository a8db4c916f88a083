#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/budget.h"
#include "core/names.h"
#include "core/statistics/statistics.h"
#include "system/usage/work_meter.h"

/// What was measured of a ladder of sizes, and which size that advises.
namespace cputrain::tune {

/// How much quicker one size is than another: 0.05 is 5 % more images a second.
struct Gain {
  double median = 0;
  Interval interval{};    ///< that holds the median
  double confidence = 0;  ///< with this probability
  int rounds = 0;
};

/// Compares rates of rounds in which both took turns: round by round, so that a slow minute of the
/// machine meets both alike. As many of either, at least one.
Gain gain_of(std::span<const double> rates, std::span<const double> of_other);

/// Less is not worth the memory, and is near what repeated measurements differ by.
inline constexpr double kLeastGain = 0.03;

/// The gain of b over a, where this is that of a over b.
Gain inverse(const Gain&);
/// The gain of a over c, where these are those of a over b and of b over c. The interval has both
/// at their ends, and holds the product with at least 1 less what either misses.
Gain chained(const Gain&, const Gain&);

/// At least kLeastGain, and above nothing with all of its interval.
bool pays(const Gain&);
/// More rounds might tell: kLeastGain, or no gain at all, lies within the interval, or it pays but
/// not surely.
bool is_unsure(const Gain&);

/// Why a climb ended: there are no more rungs, speed has not grown for kPatience rungs, or the next
/// one has no room.
enum class ClimbEnd { top, flat, memory };
constexpr auto names(ClimbEnd) {
  return std::to_array<Name<ClimbEnd>>(
      {{ClimbEnd::top, "top"}, {ClimbEnd::flat, "flat"}, {ClimbEnd::memory, "memory"}});
}
inline constexpr int kPatience = 2;

struct Climb {
  int best = 0;  ///< the last that paid, or the first
  ClimbEnd end = ClimbEnd::top;
};

/// Measures a rung beside the best one so far; nothing where it has no room.
using Contest = std::function<std::optional<Gain>(int best, int next)>;

/// From the first rung up. Each is compared with the best and not with its neighbour, so that small
/// gains add up. `rungs` ascend; there is at least one.
Climb climb(std::span<const int> rungs, const Contest&);

/// A size that was measured.
struct Rung {
  int value = 0;
  /// The one figure for its speed, 0 where it was not measured: of the first size the median of its
  /// rounds, else that of the size it was compared with, times 1 + gain. So speeds differ by what
  /// was found in rounds in which both took turns, whatever the machine did between contests.
  double images_per_second = 0;
  std::vector<double> rounds{};  ///< images/s, in its first contest
  /// On the rank with most, and of all ranks of the node with most: as --dry-run has it, but for
  /// decoded images; and resident at the most, of host memory alone.
  system::HeldMemory planned{};
  std::optional<system::HeldMemory> measured{};
  std::optional<int> against{};  ///< the best rung when this one was tried
  std::optional<Gain> gain{};    ///< over that one
  TakenTime lost{};              ///< meanwhile; `stolen` in rounds that count
};

struct Ladder {
  std::string flag;           ///< whose values rungs are: "micro-batch"
  std::vector<Rung> rungs{};  ///< in the order in which they were tried
  Climb climb{};
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

/// "+6.1 % (5.0 to 7.2)"
std::string gain_text(const Gain&);
/// Images a second: "812.5", "38,478".
std::string rate_of_images(double rate);
/// Rounded: "40 s", "4 min", "1.5 h".
std::string about_text(double seconds);
/// Rounded up.
std::string most_text(double seconds);
/// Where enough time was lost to say so: "threads waited 23 % of their time for a CPU"; else empty.
std::string lost_text(const TakenTime&);

}  // namespace cputrain::tune
