#include "scaling/tune/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/text.h"
#include "system/lost_time.h"

namespace cputrain::tune {
namespace {

/// From a size over those that it, and each of them, was compared with, down to the first.
std::vector<int> way_down(const Ladder& ladder, int value) {
  std::vector<int> way{value};
  for (const Rung* rung = ladder.find(value); rung->against; rung = ladder.find(way.back())) {
    way.push_back(*rung->against);
  }
  return way;
}

/// The gain of a size over one that is on its way down.
Gain gain_down_to(const Ladder& ladder, int value, int lower) {
  Gain gain{0, {0, 0}, 1, 0};
  for (bool first = true; value != lower; first = false) {
    const Rung& rung = *ladder.find(value);
    gain = first ? *rung.gain : chained(gain, *rung.gain);
    value = *rung.against;
  }
  return gain;
}

bool usual_has_no_room(const Ladder& ladder) {
  return ladder.climb.end == ClimbEnd::memory && ladder.usual > ladder.largest();
}

/// It pays, and the interval was made of enough rounds: that of three has a confidence of 0.75,
/// which says too little for advice.
bool surely_pays(const Gain& gain) {
  constexpr double kLeastConfidence = 0.8;
  return pays(gain) && gain.confidence >= kLeastConfidence;
}

/// `minutes` and so on are whole ones by this rule.
std::string time_text(double seconds, double (*whole)(double)) {
  constexpr double kMinute = 60, kHour = 3600, kFewMinutes = 90, kFewHours = 90;
  if (seconds < kFewMinutes) return fmt::format("{:.0f} s", std::max(1.0, whole(seconds)));
  if (seconds < kFewHours * kMinute) return fmt::format("{:.0f} min", whole(seconds / kMinute));
  return fmt::format("{:.1f} h", whole(10 * seconds / kHour) / 10);
}

}  // namespace

Gain gain_of(std::span<const double> rates, std::span<const double> of_other) {
  assert(!rates.empty() && rates.size() == of_other.size());
  std::vector<double> gains;
  for (std::size_t i = 0; i < rates.size(); ++i) gains.push_back(rates[i] / of_other[i] - 1);
  const auto [interval, confidence] = median_interval(gains);
  const auto rounds = static_cast<int>(gains.size());
  return {median(std::move(gains)), interval, confidence, rounds};
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

const Rung* Ladder::find(int value) const {
  const auto found = std::ranges::find(rungs, value, &Rung::value);
  return found == rungs.end() ? nullptr : &*found;
}

int Ladder::largest() const { return std::ranges::max_element(rungs, {}, &Rung::value)->value; }

bool Ladder::can_advise() const {
  const bool stays = climb.best == usual || (larger_alone && climb.best < usual);
  return stays || find(usual) != nullptr;
}

std::optional<Gain> Ladder::gain_over_usual() const {
  if (find(usual) == nullptr) return std::nullopt;
  const std::vector<int> of_best = way_down(*this, climb.best), of_usual = way_down(*this, usual);
  const int meeting = *std::ranges::find_first_of(of_best, of_usual);
  const Gain best = gain_down_to(*this, climb.best, meeting);
  if (meeting == usual) return best;
  const Gain of_meeting = inverse(gain_down_to(*this, usual, meeting));
  return meeting == climb.best ? of_meeting : chained(best, of_meeting);
}

std::optional<int> Ladder::advised() const {
  if (climb.best == usual) return std::nullopt;
  if (larger_alone && climb.best < usual) {
    return usual_has_no_room(*this) ? std::optional(climb.best) : std::nullopt;
  }
  const std::optional<Gain> gain = gain_over_usual();
  return gain && surely_pays(*gain) ? std::optional(climb.best) : std::nullopt;
}

std::string gain_text(const Gain& gain) {
  return fmt::format("{:+.1f} % ({:.1f} to {:.1f})", 100 * gain.median, 100 * gain.interval.low,
                     100 * gain.interval.high);
}

std::string rate_of_images(double rate) {
  constexpr double kWhole = 1000;
  return rate < kWhole ? fmt::format("{:.4g}", rate)
                       : with_commas(static_cast<std::size_t>(std::llround(rate)));
}

std::string about_text(double seconds) { return time_text(seconds, std::round); }
std::string most_text(double seconds) { return time_text(seconds, std::ceil); }

std::string lost_text(const TakenTime& lost) {
  std::vector<std::string> parts;
  if (lost.cpu_wait.value_or(0) >= system::kWaitWorthSaying) {
    parts.push_back(
        fmt::format("threads waited {:.0f} % of their time for a CPU", 100 * *lost.cpu_wait));
  }
  if (lost.stolen.value_or(0) >= system::kStolenWorthSaying) {
    parts.push_back(
        fmt::format("{:.0f} % of the CPU time went to others on the host", 100 * *lost.stolen));
  }
  return join(parts, ", and ");
}

}  // namespace cputrain::tune
