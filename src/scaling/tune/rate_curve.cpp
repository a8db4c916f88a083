#include "scaling/tune/rate_curve.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

#include "core/statistics/median.h"

namespace cputrain::tune {
namespace {

/// For each loss but the first and the last, an estimate of the square of its noise.
std::vector<double> noise_of(std::span<const double> losses) {
  std::vector<double> squares;
  for (std::size_t i = 1; i + 1 < losses.size(); ++i) {
    const double off = (losses[i - 1] + losses[i + 1]) / 2 - losses[i];
    squares.push_back(off * off * 2 / 3);
  }
  return squares;
}

/// Steps to either side that a local line looks at.
std::size_t half_window(const RateRange& range) {
  constexpr int kLeast = 4, kPart = 10;
  return static_cast<std::size_t>(std::max(kLeast, range.steps / kPart));
}

/// With the median of five in the place of a loss that is far off its neighbours, by what is usual
/// around it: one step of a spike would hide how the others fall.
std::vector<double> without_spikes(const std::vector<double>& losses, std::size_t half) {
  constexpr double kFar = 5, kMedianOfChiSquare = 0.455;  // one degree of freedom
  const std::vector<double> noise = noise_of(losses);
  std::vector<double> kept = losses;
  for (std::size_t i = 2; i + 2 < losses.size(); ++i) {
    const std::size_t at = i - 1, first = at - std::min(at, half);
    const std::size_t end = std::min(noise.size(), at + half + 1);
    const auto part = std::span(noise).subspan(first, end - first);
    const double usual = median({part.begin(), part.end()}) / kMedianOfChiSquare;
    if (noise[at] <= kFar * kFar * usual) continue;
    kept[i] = median({losses[i - 2], losses[i - 1], losses[i], losses[i + 1], losses[i + 2]});
  }
  return kept;
}

/// A line through the losses around a step.
class LocalLine {
 public:
  LocalLine(std::span<const double> losses, std::size_t at, std::size_t half)
      : first_(at - std::min(at, half)), last_(std::min(losses.size() - 1, at + half)) {
    const double reach = static_cast<double>(half) + 1;
    double sum = 0;
    for (std::size_t i = first_; i <= last_; ++i) {
      const double x = static_cast<double>(i) - static_cast<double>(at);
      const double weight = std::pow(1 - std::pow(std::abs(x) / reach, 3), 3);
      weights_.push_back(weight);
      sum += weight;
      mean_x_ += weight * x;
      mean_y_ += weight * losses[i];
    }
    mean_x_ /= sum;
    mean_y_ /= sum;
    double products = 0;
    for (std::size_t i = first_; i <= last_; ++i) {
      const double off = static_cast<double>(i) - static_cast<double>(at) - mean_x_;
      const double weight = weights_[i - first_];
      products += weight * off * (losses[i] - mean_y_);
      squares_ += weight * off * off;
      weighted_squares_ += weight * weight * off * off;
    }
    slope_ = squares_ > 0 ? products / squares_ : 0;
  }

  double value() const { return mean_y_ - slope_ * mean_x_; }
  double slope() const { return slope_; }  ///< by step
  /// The slope's error, where the noise of losses has these squares.
  double error(std::span<const double> noise) const {
    if (noise.empty() || squares_ == 0) return 0;
    const std::size_t begin = std::min(first_, noise.size() - 1);
    const std::size_t end = std::clamp(last_, begin + 1, noise.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += noise[i];
    const double variance = sum / static_cast<double>(end - begin);
    return std::sqrt(variance * weighted_squares_) / squares_;
  }

 private:
  std::size_t first_, last_;
  std::vector<double> weights_;
  double mean_x_ = 0, mean_y_ = 0, squares_ = 0, weighted_squares_ = 0, slope_ = 0;
};

}  // namespace

double RateRange::at(int step) const {
  assert(steps >= 2);
  return low * std::pow(high / low, static_cast<double>(step) / (steps - 1));
}

double RateRange::steps_per_decade() const { return (steps - 1) / std::log10(high / low); }

bool DivergenceWatch::add(double loss) {
  if (!std::isfinite(loss)) return true;
  constexpr double kPast = 0.9;
  sum_ = kPast * sum_ + (1 - kPast) * loss;
  share_ = kPast * share_ + (1 - kPast);
  const double mean = sum_ / share_;
  if (!best_) first_ = mean;
  best_ = std::min(best_.value_or(mean), mean);
  return mean > std::max(kDiverged * *best_, first_);
}

std::vector<SmoothLoss> smooth(const RateCurve& curve) {
  std::vector<double> losses = curve.losses;
  if (losses.empty()) return {};
  // A few images that are learnt by heart come to a loss near 0, beside which all is large.
  const double most = std::max(kDiverged * std::ranges::min(losses), losses.front());
  for (double& loss : losses) loss = std::min(loss, most);
  losses = without_spikes(losses, half_window(curve.range));
  const std::vector<double> noise = noise_of(losses);
  const double decade = curve.range.steps_per_decade();
  std::vector<SmoothLoss> smoothed;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const LocalLine line(losses, i, half_window(curve.range));
    smoothed.push_back({line.value(), decade * line.slope(), decade * line.error(noise)});
  }
  return smoothed;
}

}  // namespace cputrain::tune
