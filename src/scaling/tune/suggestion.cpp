#include "scaling/tune/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"

namespace cputrain::tune {
namespace {

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string speed_text(const Rung& rung) {
  return rate_of_images(rung.images_per_second) + " images/s";
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
  return ladder.rungs.size() == 1 ? "no other size was tried"
                                  : fmt::format("{} was the largest tried", ladder.largest());
}

/// Where the best size was measured and is not advised: "8 is +1.2 % (-0.5 to 3.1) over that".
std::string unsure_text(const Ladder& ladder) {
  const std::optional<Gain> gain = ladder.gain_over_usual();
  if (!gain) return "they were not compared: " + ladder.no_room;
  return fmt::format("{} is {} over that", ladder.best().value, gain_text(*gain));
}

std::string not_quicker_text(const Ladder& ladder) {
  return fmt::format("no size is surely quicker by {} or more than {}", percent(kLeastGain),
                     ladder.usual);
}

void say_lost(const Ladder& ladder, Suggestion& to) {
  const std::string text = most_lost_text(ladder);
  if (text.empty()) return;
  to.lines.push_back(fmt::format(
      "Figures of --{} were disturbed, {}. {}", ladder.flag, text,
      ladder.crowded ? "Fewer --threads or ranks take no turns." : "Try again at a quieter time."));
}

std::string micro_batch_text(const Ladder& ladder) {
  const std::string end = end_text(ladder);
  if (ladder.climb.best == ladder.usual) {
    return fmt::format(
        "Micro-batch: {}, as it is without the flag, is the largest that pays, {} ({}). Leave "
        "--micro-batch out.",
        ladder.usual, speed_text(ladder.best()), end);
  }
  if (const auto advised = ladder.advised()) {
    return fmt::format("Micro-batch: {}, {} over {}, which it is without the flag ({}).", *advised,
                       gain_text(*ladder.gain_over_usual()), ladder.usual, end);
  }
  return fmt::format("Micro-batch: {}, which it is without the flag: leave --micro-batch out ({}).",
                     not_quicker_text(ladder), unsure_text(ladder));
}

void suggest_micro_batch(const Findings& findings, Suggestion& to) {
  if (!findings.micro_batch) {
    if (!findings.no_micro_batch.empty()) to.lines.push_back(findings.no_micro_batch);
    return;
  }
  to.lines.push_back(micro_batch_text(*findings.micro_batch));
  say_lost(*findings.micro_batch, to);
  if (const auto advised = findings.micro_batch->advised()) {
    to.flags.insert(to.flags.end(), {"--micro-batch", std::to_string(*advised)});
  }
}

std::string batch_text(const Ladder& ladder) {
  const std::string pays = fmt::format("{} is the largest that pays, {} ({})", ladder.climb.best,
                                       speed_text(ladder.best()), end_text(ladder));
  if (const auto advised = ladder.advised()) {
    const std::optional<Gain> gain = ladder.gain_over_usual();
    return fmt::format(
        "Batch: {}{}. The usual batch is {}: another one trains otherwise and wants another "
        "learning rate.",
        pays, gain ? fmt::format("; {} over {}", gain_text(*gain), ladder.usual) : "",
        ladder.usual);
  }
  if (ladder.climb.best <= ladder.usual) {
    return fmt::format("Batch: {}. The usual batch, {}, stays.", pays, ladder.usual);
  }
  return fmt::format("Batch: {}, the usual batch, which stays: leave --batch out ({}).",
                     not_quicker_text(ladder), unsure_text(ladder));
}

void suggest_batch(const Findings& findings, Suggestion& to) {
  if (!findings.batch) {
    if (!findings.no_batch.empty()) to.lines.push_back(findings.no_batch);
    return;
  }
  to.lines.push_back(batch_text(*findings.batch));
  say_lost(*findings.batch, to);
  if (const auto advised = findings.batch->advised()) {
    to.flags.insert(to.flags.end(), {"--batch", std::to_string(*advised)});
  }
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

std::string whole_steps_text(double kept_features) {
  const std::string kept =
      kept_features < 1
          ? fmt::format("{:.0f} % of what its frozen layers make of images", 100 * kept_features)
          : std::string("what its frozen layers make of every image");
  return fmt::format(
      "Speeds are of steps that compute all layers. A training keeps {}, so they count in its "
      "first epoch{}.",
      kept, kept_features < 1 ? ", and later for the other images" : " alone");
}

report::Verdict verdict_of(const Gain& gain) {
  if (gain.interval.low > 0) return report::Verdict::faster;
  if (gain.interval.high < 0) return report::Verdict::slower;
  return report::Verdict::no_difference_shown;
}

Suggestion suggestion_of(const Findings& findings) {
  Suggestion suggestion;
  if (findings.kept_features && (findings.micro_batch || findings.batch)) {
    suggestion.lines.push_back(whole_steps_text(*findings.kept_features));
  }
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
