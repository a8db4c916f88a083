#include "scaling/tune/suggestion.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/statistics/median.h"
#include "core/text.h"

namespace cputrain::tune {
namespace {

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string speed_text(const Rung& rung) {
  return rate_of_images(median(rung.images_per_second)) + " images/s";
}

/// Why the climb went no further.
std::string end_text(const Ladder& ladder) {
  switch (ladder.climb.end) {
    case ClimbEnd::flat:
      return fmt::format("the next {} sizes are quicker by less than {}, or not surely", kPatience,
                         percent(kLeastGain));
    case ClimbEnd::memory:
      return ladder.no_room;
    case ClimbEnd::top:
      break;
  }
  return ladder.rungs.size() == 1
             ? "no other size was tried"
             : fmt::format("{} was the largest tried", ladder.rungs.back().value);
}

void suggest_micro_batch(const Findings& findings, Suggestion& to) {
  if (!findings.micro_batch) {
    if (!findings.no_micro_batch.empty()) to.lines.push_back(findings.no_micro_batch);
    return;
  }
  const Rung& best = findings.micro_batch->best();
  to.lines.push_back(fmt::format(
      "Micro-batch: {} is the largest that pays, {} ({}). Without the "
      "flag it would be {}.",
      best.value, speed_text(best), end_text(*findings.micro_batch), findings.usual_micro_batch));
  to.flags.insert(to.flags.end(), {"--micro-batch", std::to_string(best.value)});
}

/// "128 (2400 images/s)", where it was measured.
std::string batch_text(const Ladder& ladder, std::size_t batch) {
  for (const Rung& rung : ladder.rungs) {
    if (static_cast<std::size_t>(rung.value) != batch) continue;
    return fmt::format("{} ({})", batch, speed_text(rung));
  }
  return std::to_string(batch);
}

void suggest_batch(const Findings& findings, Suggestion& to) {
  if (!findings.batch) {
    if (!findings.no_batch.empty()) to.lines.push_back(findings.no_batch);
    return;
  }
  const Rung& best = findings.batch->best();
  const std::size_t usual = findings.usual_batch, chosen = chosen_batch(*findings.batch, usual);
  const std::string found = fmt::format("Batch: {} is the largest that pays, {} ({}).", best.value,
                                        speed_text(best), end_text(*findings.batch));
  to.lines.push_back(
      found + (chosen == usual
                   ? fmt::format(" The usual batch, {}, stays.", batch_text(*findings.batch, usual))
                   : fmt::format(" The usual batch is {}: another one trains "
                                 "otherwise and wants another learning rate.",
                                 usual)));
  to.flags.insert(to.flags.end(), {"--batch", std::to_string(chosen)});
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

/// Where a test was of two rates at once.
void say_ratio(const RateFindings& rate, Suggestion& to) {
  if (!rate.backbone) return;
  to.lines.push_back(
      fmt::format("The rate of the backbone kept its ratio to --lr, {:.3g}.", *rate.backbone));
}

void suggest_rate(const Findings& findings, Suggestion& to) {
  if (!findings.rate) {
    if (!findings.no_rate.empty()) to.lines.push_back(findings.no_rate);
    return;
  }
  const RateFindings& rate = *findings.rate;
  if (!rate.advice) {
    to.lines.push_back(no_advice_text(rate.curve, rate.smoothed));
    say_ratio(rate, to);
    return;
  }
  const RateAdvice& advice = *rate.advice;
  to.lines.push_back(fmt::format(
      "Learning rate: {}, {}. At its steepest the loss falls by {:.3g} (standard error {:.2g}) per "
      "tenfold rate; it falls as steeply from {} to {}, as far as the noise tells.",
      rate_text(advice.rate),
      advice.capped ? "the end of the range, since the loss falls steepest above it"
                    : "where the loss falls steepest",
      -advice.steepest.slope, advice.steepest.slope_error, rate_text(advice.from),
      rate_text(advice.to)));
  to.lines.push_back(range_text(rate));
  if (rate.scale != 1) {
    to.lines.push_back(fmt::format("--lr-scale multiplies --lr by {:.4g}, so --lr is {}.",
                                   rate.scale, rate_text(advice.rate / rate.scale)));
  }
  const double own = advice.rate / rate.scale;
  to.flags.insert(to.flags.end(), {"--lr", rate_text(own)});
  say_ratio(rate, to);
  if (!rate.backbone) return;
  to.flags.insert(to.flags.end(), {"--backbone-lr", rate_text(own * *rate.backbone)});
}

}  // namespace

RateFindings findings_of(RateCurve curve, std::size_t batch, std::size_t images, double scale) {
  std::vector<SmoothLoss> smoothed = smooth(curve);
  auto advice = advise(curve, smoothed);
  return {std::move(curve), std::move(smoothed), advice, batch, images, scale, {}};
}

std::size_t chosen_batch(const Ladder& ladder, std::size_t usual) {
  const auto best = static_cast<std::size_t>(ladder.climb.best);
  const auto largest = static_cast<std::size_t>(ladder.rungs.back().value);
  const bool has_no_room = ladder.climb.end == ClimbEnd::memory && usual > largest;
  return has_no_room || usual < best ? best : usual;
}

Suggestion suggestion_of(const Findings& findings) {
  Suggestion suggestion;
  suggest_micro_batch(findings, suggestion);
  suggest_batch(findings, suggestion);
  suggest_rate(findings, suggestion);
  return suggestion;
}

std::string gain_text(const Gain& gain) {
  return fmt::format("{:+.1f} % ({:.1f} to {:.1f})", 100 * gain.median, 100 * gain.interval.low,
                     100 * gain.interval.high);
}

std::string rung_line(const std::string& flag, const Rung& rung) {
  std::string line = fmt::format("{} {}: {}", flag, rung.value, speed_text(rung));
  if (rung.gain) line += fmt::format(", {} over {}", gain_text(*rung.gain), *rung.against);
  line += fmt::format("; memory of a rank: {} planned",
                      bytes_text(static_cast<double>(rung.planned.rank)));
  if (!rung.measured) return line;
  return line + fmt::format(", {} measured", bytes_text(static_cast<double>(rung.measured->rank)));
}

std::string rate_of_images(double rate) {
  constexpr double kWhole = 1000;
  return rate < kWhole ? fmt::format("{:.4g}", rate)
                       : with_commas(static_cast<std::size_t>(std::llround(rate)));
}

std::string rate_text(double rate) { return fmt::format("{:.2g}", rate); }

}  // namespace cputrain::tune
