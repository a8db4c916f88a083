#include "scaling/tune/rate_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include "core/text.h"

namespace cputrain::tune {
namespace {

/// Less is rounding, for losses without noise.
constexpr double kLeastSlope = 1e-6;

bool falls(const SmoothLoss& s) { return s.slope + kErrorsOfFall * s.slope_error < -kLeastSlope; }
bool rises(const SmoothLoss& s) { return s.slope - kErrorsOfFall * s.slope_error > kLeastSlope; }

/// Whether one slope cannot be told from a steeper one.
bool is_alike(const SmoothLoss& s, const SmoothLoss& steepest) {
  return s.slope - steepest.slope <= kErrorsAlike * std::hypot(s.slope_error, steepest.slope_error);
}

}  // namespace

std::optional<RateAdvice> advise(const RateCurve& curve, const std::vector<SmoothLoss>& smoothed) {
  if (smoothed.size() < kLeastSteps) return std::nullopt;
  const auto least = std::ranges::min_element(smoothed, {}, &SmoothLoss::loss);
  // Behind the least loss it falls by chance alone.
  const auto steepest =
      std::min_element(smoothed.begin(), least + 1,
                       [](const SmoothLoss& a, const SmoothLoss& b) { return a.slope < b.slope; });
  if (!falls(*steepest)) return std::nullopt;
  const auto rate_at = [&](auto place) {
    return curve.range.at(static_cast<int>(place - smoothed.begin()));
  };
  auto begins = steepest, from = steepest, to = steepest;
  while (begins != smoothed.begin() && falls(*(begins - 1))) --begins;
  while (from != begins && is_alike(*(from - 1), *steepest)) --from;
  while (to != least && falls(*(to + 1)) && is_alike(*(to + 1), *steepest)) ++to;
  constexpr double kTenth = 0.1;
  RateAdvice advice{.from = rate_at(from), .to = rate_at(to), .steepest = *steepest};
  advice.high = kTenth * (curve.diverged_at > 0 ? curve.diverged_at : rate_at(least));
  advice.rate = std::min(rate_at(steepest), advice.high);
  advice.capped = advice.rate < rate_at(steepest);
  advice.low = std::min(rate_at(begins), advice.rate);
  return advice;
}

std::optional<double> rises_from(const RateCurve& curve, const std::vector<SmoothLoss>& smoothed) {
  const auto rise = std::ranges::find_if(smoothed, rises);
  if (rise == smoothed.end()) return std::nullopt;
  return curve.range.at(static_cast<int>(rise - smoothed.begin()));
}

std::string no_advice_text(const RateCurve& curve, const std::vector<SmoothLoss>& smoothed) {
  if (curve.losses.size() < kLeastSteps) {
    return fmt::format(
        "Learning rate: the loss diverged after {}, so there is no curve; try a lower "
        "--min-lr.",
        counted(curve.losses.size(), "step"));
  }
  const std::optional<double> from = rises_from(curve, smoothed);
  const std::string rise =
      from
          ? fmt::format(
                " It rises by more than that from {:.2g} on, so rates should be well below.", *from)
          : "";
  return "Learning rate: the loss falls nowhere by more than its noise, so none is suggested." +
         rise +
         " More --lr-steps, a larger --batch or other limits (--min-lr, --max-lr) may show more.";
}

}  // namespace cputrain::tune
