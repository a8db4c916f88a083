#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scaling/report/forms/document.h"
#include "scaling/report/trainings/run_list.h"

/// What runs were given or made of otherwise than others, and two of them beside each other.
namespace cputrain::report {

/// What differs, by the words of flags, then by names of facts: "label-smoothing", "seed",
/// "training images". Of runs whose files can be read; a flag that one has and another lacks
/// differs, a fact that nobody says does not.
std::vector<std::string> keys_that_differ(const std::vector<RunRecord>&);
/// As it was given, or as a recipe or the machine decided it; nothing where a run does not say.
std::optional<std::string> value_of(const RunRecord&, const std::string& key);
/// The same; null where a run does not say.
nlohmann::ordered_json value_json(const RunRecord&, const std::string& key);

/// A table with a row for each key, or for each run where these are more; empty where nothing
/// differs.
Section differences_section(const std::vector<RunRecord>&);

/// Two runs: what differs, then their figures with differences (report --diff).
Document run_difference_document(const std::vector<RunRecord>& both);
std::string run_difference_csv(const std::vector<RunRecord>& both);
nlohmann::ordered_json run_difference_json(const std::vector<RunRecord>& both);

}  // namespace cputrain::report
