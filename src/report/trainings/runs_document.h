#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/document.h"
#include "report/trainings/run_list.h"

/// A report of single trainings: a row for each of them.
namespace cputrain::report {

/// At least one run.
Document runs_document(const RunList&);

/// The sentences that come first: the best run, and the quickest to what most runs reached; of
/// each data set, since accuracies on different images say nothing of each other.
std::vector<std::string> runs_headline(const RunList&);

/// A line per run, in the order of the list.
std::string runs_csv(const RunList&);
/// {"runs": [...], "same_configuration": [...], "left_out": [...]}.
nlohmann::ordered_json runs_json(const RunList&);
/// Loss and accuracy of the first kMostRunCurves runs, for the page: read from their files.
nlohmann::ordered_json run_curves_json(const RunList&);

/// More lines than this nobody tells apart.
inline constexpr std::size_t kMostRunCurves = 40;

}  // namespace cputrain::report
