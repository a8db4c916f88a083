#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scaling/report/forms/document.h"
#include "scaling/report/sweep_difference.h"
#include "scaling/tune/ladder.h"
#include "scaling/tune/rate_curve.h"

/// What was found, what that suggests, and both for programs and for people.
namespace cputrain::tune {

struct Findings {
  // What was tuned, and where.
  std::string model{}, backend{}, precision{}, optimizer{}, cpu{}, data{};
  int image_size = 0, ranks = 1, threads = 1;
  // What was found.
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

/// Where enough time was lost to say so: lost_text() of the size that lost most, with its name;
/// else empty.
std::string most_lost_text(const Ladder&);
/// What speeds of whole steps say of a training that keeps such a part of what frozen layers make.
std::string whole_steps_text(double kept_features);
/// Faster or slower where all of the interval is.
report::Verdict verdict_of(const Gain&);

inline constexpr const char* kTuneName = "tune.json";
inline constexpr const char* kPageName = "tune.html";

nlohmann::ordered_json findings_json(const Findings&);

/// `whole`: with the figures of each step of the rate test, which a terminal does not want.
report::Document findings_document(const Findings&, bool whole);
/// One page with the curves.
std::string findings_page(const Findings&);

}  // namespace cputrain::tune
