#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scaling/report/forms/document.h"
#include "scaling/tune/suggestion.h"

/// What was found, for programs and for people.
namespace cputrain::tune {

inline constexpr const char* kTuneName = "tune.json";
inline constexpr const char* kPageName = "tune.html";

nlohmann::ordered_json findings_json(const Findings&);

/// `whole`: with the figures of each step of the rate test, which a terminal does not want.
report::Document findings_document(const Findings&, bool whole);
/// One page with the curves.
std::string findings_page(const Findings&);

}  // namespace cputrain::tune
