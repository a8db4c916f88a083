#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"

namespace cputrain::training {
class Training;
}

/// Losses of steps whose learning rate grows from one to the next, and which rates they advise: the
/// range test of Smith, "Cyclical Learning Rates for Training Neural Networks" (WACV 2017), section
/// 3.3.
namespace cputrain::tune {

struct RateRange {
  double low = 0, high = 0;
  int steps = 0;  ///< at least two

  /// The rate of a step, from 0: each is the same factor times the one before.
  double at(int step) const;
  /// Steps in which the rate becomes ten times as large.
  double steps_per_decade() const;
};

/// What ended a test: the range, a loss that is kDiverged times its best, or one that is NaN.
enum class TestEnd { range, diverged, not_finite };
constexpr auto names(TestEnd) {
  return std::to_array<Name<TestEnd>>({{TestEnd::range, "range"},
                                       {TestEnd::diverged, "diverged"},
                                       {TestEnd::not_finite, "not finite"}});
}

struct RateCurve {
  RateRange range;
  std::vector<double> losses;  ///< mean loss of each step that was finite
  TestEnd end = TestEnd::range;
  double diverged_at = 0;  ///< the rate of the step that ended it; 0 where none did
};

/// How many times its best a loss is where a test ends, if it is larger than at first, too.
inline constexpr double kDiverged = 4;

/// Watches a running mean of losses, which the past has nine tenths of, without the bias of its
/// start (Kingma and Ba, "Adam", section 3).
class DivergenceWatch {
 public:
  /// Whether the test ends with this loss.
  bool add(double loss);

 private:
  double sum_ = 0, share_ = 0, first_ = 0;
  std::optional<double> best_{};
};

/// A loss without the noise of its step's images.
struct SmoothLoss {
  double loss = 0;
  double slope = 0;        ///< change of the loss while the rate becomes ten times as large
  double slope_error = 0;  ///< its standard error
};

/// By step. Local lines with tricube weights over a fifth of the range (Cleveland, "Robust Locally
/// Weighted Regression", 1979): unlike a running mean, they are not late. The noise comes from what
/// each loss differs from the mean of its neighbours (Gasser, Sroka, Jennen-Steinmetz 1986). Where
/// losses leave those before them for good, by more than their noise, lines end: what is on one
/// side does not bend the other. Losses above kDiverged times the least one, and above the first,
/// count as the larger of these.
std::vector<SmoothLoss> smooth(const RateCurve&);

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

/// The lowest rate from which the smoothed loss rises by more than its noise, or at which losses
/// leave those before them for good.
std::optional<double> rises_from(const RateCurve&, const std::vector<SmoothLoss>&);

/// Why there is none, and what to try.
std::string no_advice_text(const RateCurve&, const std::vector<SmoothLoss>&);

/// A test of learning rates, with what it says.
struct RateFindings {
  RateCurve curve;
  std::vector<SmoothLoss> smoothed;
  std::optional<RateAdvice> advice;
  std::size_t batch = 0;             ///< images of a step
  std::size_t images = 0;            ///< that it drew from
  double scale = 1;                  ///< what --lr-scale makes of --lr
  std::optional<double> backbone{};  ///< --backbone-lr by --lr, where it was given
};

/// The same with everything that follows from the curve.
RateFindings findings_of(RateCurve, std::size_t batch, std::size_t images, double scale);

/// What to do, a sentence each.
std::vector<std::string> advice_lines(const RateFindings&);
/// Two digits: no test knows more of a rate.
std::string rate_text(double rate);

/// Trains with a rate that grows at every step, until it is at its end or the loss diverges. The
/// training has started, and its weights are worth nothing afterwards. Its schedule and warm-up are
/// not asked. Losses are of all ranks, so every rank sees one curve. Error(data) where an image is
/// not the data's any more. Collective.
RateFindings test_rates(training::Training&, const RateRange&, std::size_t batch, double scale);

}  // namespace cputrain::tune
