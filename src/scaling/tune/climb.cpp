#include "scaling/tune/climb.h"

#include <algorithm>
#include <cassert>

namespace cputrain::tune {

Gain gain_of(std::span<const double> rates, std::span<const double> of_other) {
  assert(!rates.empty() && rates.size() == of_other.size());
  std::vector<double> gains;
  for (std::size_t i = 0; i < rates.size(); ++i) gains.push_back(rates[i] / of_other[i] - 1);
  const MedianInterval of_median = median_interval(gains);
  const auto rounds = static_cast<int>(gains.size());
  return {median(std::move(gains)), of_median.interval, of_median.confidence, rounds};
}

Gain inverse(const Gain& gain) {
  const auto inverted = [](double part) { return 1 / (1 + part) - 1; };
  return {inverted(gain.median),
          {inverted(gain.interval.high), inverted(gain.interval.low)},
          gain.confidence,
          gain.rounds};
}

Gain chained(const Gain& first, const Gain& second) {
  const auto both = [](double a, double b) { return (1 + a) * (1 + b) - 1; };
  return {both(first.median, second.median),
          {both(first.interval.low, second.interval.low),
           both(first.interval.high, second.interval.high)},
          std::max(0.0, first.confidence + second.confidence - 1),
          std::min(first.rounds, second.rounds)};
}

bool pays(const Gain& gain) { return gain.median >= kLeastGain && gain.interval.low > 0; }

bool surely_pays(const Gain& gain) { return pays(gain) && gain.confidence >= kLeastConfidence; }

bool is_unsure(const Gain& gain) {
  const auto holds = [&](double value) {
    return gain.interval.low < value && value < gain.interval.high;
  };
  return holds(kLeastGain) || (gain.median >= kLeastGain && holds(0)) ||
         (pays(gain) && !surely_pays(gain));
}

Climb climb(std::span<const int> rungs, const Contest& contest) {
  assert(!rungs.empty());
  Climb result{rungs.front()};
  int in_vain = 0;
  for (const int next : rungs.subspan(1)) {
    const std::optional<Gain> gain = contest(result.best, next);
    if (!gain) return {result.best, ClimbEnd::memory};
    if (pays(*gain)) {
      result.best = next;
      in_vain = 0;
    } else if (++in_vain == kPatience) {
      return {result.best, ClimbEnd::flat};
    }
  }
  return result;
}

std::vector<int> doubled(int first, int last) {
  std::vector<int> rungs;
  for (long long rung = first; rung < last; rung *= 2) rungs.push_back(static_cast<int>(rung));
  rungs.push_back(last);
  return rungs;
}

}  // namespace cputrain::tune
