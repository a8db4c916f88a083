#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scaling/report/sweep_difference.h"
#include "scaling/tune/ladder.h"
#include "scaling/tune/rate_curve.h"

namespace cputrain::tune {

/// What was tuned, and where.
struct TuneFacts {
  std::string model{}, backend{}, precision{}, optimizer{}, cpu{}, data{};
  int image_size = 0, ranks = 1, threads = 1;
};

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

struct Findings {
  TuneFacts facts{};
  std::optional<Ladder> micro_batch{}, batch{};
  std::string no_micro_batch{}, no_batch{};  ///< why there is no ladder
  /// The part of what frozen layers make of images that a training keeps; nothing where it keeps
  /// none. Speeds are of steps without.
  std::optional<double> kept_features{};
  std::optional<RateFindings> rate{};
  std::string no_rate{};  ///< why there is no test
};

/// What to do, and the flags that do it.
struct Suggestion {
  std::vector<std::string> lines;
  std::vector<std::string> flags;  ///< to be copied: "--micro-batch", "32"
};
Suggestion suggestion_of(const Findings&);

/// "micro-batch 32: 136.2 images/s, +6.1 % (5.0 to 7.2) over 8; memory of a rank: 1.1 GB planned"
std::string rung_line(const std::string& flag, const Rung&);
/// What speeds of whole steps say of a training that keeps such a part of what frozen layers make.
std::string whole_steps_text(double kept_features);
/// Faster or slower where all of the interval is.
report::Verdict verdict_of(const Gain&);
/// "+6.1 % (5.0 to 7.2)"
std::string gain_text(const Gain&);
/// Two digits: no test knows more of a rate.
std::string rate_text(double rate);
/// Images a second: "812.5", "38,478".
std::string rate_of_images(double rate);

}  // namespace cputrain::tune
