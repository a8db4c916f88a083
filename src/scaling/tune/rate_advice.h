#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scaling/tune/rate_curve.h"

namespace cputrain::tune {

/// What a curve says of learning rates.
struct RateAdvice {
  double rate = 0;           ///< where the loss falls steepest, at most `high`
  double from = 0, to = 0;   ///< rates at which it falls as steeply, as far as the noise tells
  double low = 0, high = 0;  ///< from where it falls at all, to a tenth of where it diverges
  bool capped = false;       ///< it falls steepest above `high`
  SmoothLoss steepest{};
};

/// A slope that is so many standard errors below zero falls. Of the many places of a curve, the
/// steepest is two or three of them below by chance.
inline constexpr double kErrorsOfFall = 4;
/// Slopes that differ by more of them are not alike: about 95 %.
inline constexpr double kErrorsAlike = 2;
/// Fewer steps make no line.
inline constexpr std::size_t kLeastSteps = 8;

/// Nothing where the loss falls nowhere by more than its noise. A test that did not diverge counts
/// from the rate with the least smoothed loss in the place of that at which it diverges.
std::optional<RateAdvice> advise(const RateCurve&, const std::vector<SmoothLoss>&);

/// The lowest rate from which the smoothed loss rises by more than its noise.
std::optional<double> rises_from(const RateCurve&, const std::vector<SmoothLoss>&);

/// Why there is none, and what to try.
std::string no_advice_text(const RateCurve&, const std::vector<SmoothLoss>&);

}  // namespace cputrain::tune
