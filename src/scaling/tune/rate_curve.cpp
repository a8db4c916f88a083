#include "scaling/tune/rate_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/tune/ladder.h"
#include "scaling/tune/speed_ladder.h"
#include "system/clock.h"
#include "training/single_steps.h"
#include "training/training.h"

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

/// The step from which on all losses lie far above those before it, by their noise and by a part of
/// their size: there the curve breaks, and no line may lead across. Their number where there is no
/// such step.
std::size_t break_of(const std::vector<double>& losses) {
  constexpr std::size_t kBefore = 5;
  constexpr double kFar = 5, kPart = 0.25, kMedianOfChiSquare = 0.455;  // one degree of freedom
  if (losses.size() <= kBefore) return losses.size();
  const double deviation = std::sqrt(median(noise_of(losses)) / kMedianOfChiSquare);
  std::vector<double> least_behind(losses);
  for (std::size_t i = losses.size() - 1; i-- > 0;)
    least_behind[i] = std::min(losses[i], least_behind[i + 1]);
  for (std::size_t i = kBefore; i < losses.size(); ++i) {
    const auto end = losses.begin() + static_cast<std::ptrdiff_t>(i);
    const double before = median({end - kBefore, end});
    if (least_behind[i] > before + std::max(kPart * before, kFar * deviation)) return i;
  }
  return losses.size();
}

/// A line through the losses around a step, whose noise has these squares: its value there, its
/// slope by step and the slope's error.
SmoothLoss local_line(std::span<const double> losses, std::span<const double> noise, std::size_t at,
                      std::size_t half) {
  const std::size_t first = at - std::min(at, half), last = std::min(losses.size() - 1, at + half);
  const double reach = static_cast<double>(half) + 1;
  std::vector<double> weights;
  double sum = 0, mean_x = 0, mean_y = 0;
  for (std::size_t i = first; i <= last; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(at);
    const double weight = weights.emplace_back(std::pow(1 - std::pow(std::abs(x) / reach, 3), 3));
    sum += weight;
    mean_x += weight * x;
    mean_y += weight * losses[i];
  }
  mean_x /= sum;
  mean_y /= sum;
  double products = 0, squares = 0, weighted_squares = 0;
  for (std::size_t i = first; i <= last; ++i) {
    const double off = static_cast<double>(i) - static_cast<double>(at) - mean_x;
    const double weight = weights[i - first];
    products += weight * off * (losses[i] - mean_y);
    squares += weight * off * off;
    weighted_squares += weight * weight * off * off;
  }
  const double slope = squares > 0 ? products / squares : 0;
  SmoothLoss line{mean_y - slope * mean_x, slope, 0};
  if (noise.empty() || squares == 0) return line;
  const std::size_t begin = std::min(first, noise.size() - 1);
  const std::size_t end = std::clamp(last, begin + 1, noise.size());
  double noises = 0;
  for (std::size_t i = begin; i < end; ++i) noises += noise[i];
  const double variance = noises / static_cast<double>(end - begin);
  line.slope_error = std::sqrt(variance * weighted_squares) / squares;
  return line;
}

/// Less is rounding, for losses without noise.
constexpr double kLeastSlope = 1e-6;

bool falls(const SmoothLoss& s) { return s.slope + kErrorsOfFall * s.slope_error < -kLeastSlope; }
bool rises(const SmoothLoss& s) { return s.slope - kErrorsOfFall * s.slope_error > kLeastSlope; }

/// Whether one slope cannot be told from a steeper one.
bool is_alike(const SmoothLoss& s, const SmoothLoss& steepest) {
  return s.slope - steepest.slope <= kErrorsAlike * std::hypot(s.slope_error, steepest.slope_error);
}

std::string steepest_text(const RateAdvice& advice) {
  return fmt::format(
      "Learning rate: {}, {}. At its steepest the loss falls by {:.3g} (standard error {:.2g}) per "
      "tenfold rate; it falls as steeply from {} to {}, as far as the noise tells.",
      rate_text(advice.rate),
      advice.capped ? "the end of the range, since the loss falls steepest above it"
                    : "where the loss falls steepest",
      -advice.steepest.slope, advice.steepest.slope_error, rate_text(advice.from),
      rate_text(advice.to));
}

std::string range_text(const RateFindings& rate) {
  const RateAdvice& advice = *rate.advice;
  const std::string low = rate_text(advice.low), high = rate_text(advice.high);
  if (rate.curve.diverged_at > 0) {
    return fmt::format(
        "Rates from {} to {} train: from where the loss begins to fall, to a tenth "
        "of {}, where it diverges.",
        low, high, rate_text(rate.curve.diverged_at));
  }
  return fmt::format(
      "Rates from {} to {} train: from where the loss begins to fall, to a tenth of "
      "where it is least. It did not diverge up to {}; --max-lr goes further.",
      low, high, rate_text(rate.curve.range.high));
}

/// Says how long the test takes, by what its first steps took: the first is longer, since
/// algorithms are tried in it. Steps of images that were met before, of which what frozen layers
/// make is kept, are shorter.
void say_duration(const training::Training& training, int steps, const std::vector<double>& first) {
  const double in_epoch = static_cast<double>(training.batches().train.steps()),
               kept = training.compiled().kept_features;
  const double seconds = median({first.begin() + 1, first.end()}) * computed(steps, in_epoch, kept);
  training::say(training.session(),
                fmt::format("Rate test: up to {} steps, {} by the first ones; it ends where the "
                            "loss diverges",
                            steps,
                            kept > 0 ? "about " + about_text(seconds)
                                     : "at most about " + most_text(seconds)));
}

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
  const double decade = curve.range.steps_per_decade();
  const std::size_t half = half_window(curve.range);
  const auto cut = losses.begin() + static_cast<std::ptrdiff_t>(break_of(curve.losses));
  std::vector<SmoothLoss> smoothed;
  for (const auto& [begin, end] : {std::pair(losses.begin(), cut), std::pair(cut, losses.end())}) {
    const std::vector<double> part = without_spikes({begin, end}, half), noise = noise_of(part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const SmoothLoss line = local_line(part, noise, i, half);
      smoothed.push_back({line.loss, decade * line.slope, decade * line.slope_error});
    }
  }
  return smoothed;
}

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
  const auto rise = std::ranges::find_if(smoothed, rises) - smoothed.begin();
  const std::size_t step = std::min(static_cast<std::size_t>(rise), break_of(curve.losses));
  if (step >= smoothed.size()) return std::nullopt;
  return curve.range.at(static_cast<int>(step));
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

RateFindings findings_of(RateCurve curve, std::size_t batch, std::size_t images, double scale) {
  std::vector<SmoothLoss> smoothed = smooth(curve);
  auto advice = advise(curve, smoothed);
  return {std::move(curve), std::move(smoothed), advice, batch, images, scale, {}};
}

std::string rate_text(double rate) { return fmt::format("{:.2g}", rate); }

std::vector<std::string> advice_lines(const RateFindings& rate) {
  std::vector<std::string> lines;
  if (rate.advice) {
    const RateAdvice& advice = *rate.advice;
    lines = {steepest_text(advice), range_text(rate)};
    if (rate.scale != 1) {
      lines.push_back(fmt::format("--lr-scale multiplies --lr by {:.4g}, so --lr is {}.",
                                  rate.scale, rate_text(advice.rate / rate.scale)));
    }
  } else {
    lines = {no_advice_text(rate.curve, rate.smoothed)};
  }
  if (rate.backbone) {  // the test was of two rates at once
    lines.push_back(
        fmt::format("The rate of the backbone kept its ratio to --lr, {:.3g}.", *rate.backbone));
  }
  return lines;
}

RateFindings test_rates(training::Training& training, const RateRange& range, std::size_t batch,
                        double scale) {
  const data::OnProgress progress = training::progress_line(training.session(), "Rate test: step");
  const auto all = static_cast<std::size_t>(range.steps);
  const std::size_t told_after = std::min<std::size_t>(5, all);
  RateCurve curve{range, {}};
  training::SingleSteps steps(training);
  DivergenceWatch watch;
  std::vector<double> seconds;
  for (int i = 0; i < range.steps; ++i) {
    const system::Stopwatch step;
    const double loss = steps.next(range.at(i));
    seconds.push_back(step.seconds());
    if (seconds.size() == told_after) say_duration(training, range.steps, seconds);
    if (std::isfinite(loss)) curve.losses.push_back(loss);
    if (watch.add(loss)) {
      curve.end = std::isfinite(loss) ? TestEnd::diverged : TestEnd::not_finite;
      curve.diverged_at = range.at(i);
      break;
    }
    if (progress) progress(static_cast<std::size_t>(i) + 1, all);
  }
  if (progress) progress(all, all);
  return findings_of(std::move(curve), batch, training.data()->train.size(), scale);
}

}  // namespace cputrain::tune
