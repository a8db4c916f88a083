#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/names.h"
#include "core/statistics/statistics.h"

/// Which rung of a ladder of sizes is the last that pays.
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
/// Below this the interval of a gain says too little for advice: that of three rounds has 0.75.
inline constexpr double kLeastConfidence = 0.8;
/// It pays, and the interval was made of enough rounds.
bool surely_pays(const Gain&);
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

/// first, 2 first, 4 first, ... and `last` at the end; `last` alone where that is no larger.
std::vector<int> doubled(int first, int last);

}  // namespace cputrain::tune
