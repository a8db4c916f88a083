#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scaling/report/forms/document.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/trainings/run_list.h"

/// A report of single trainings: a row for each of them.
namespace cputrain::report {

/// A column of runs, for every form that has it.
struct RunColumn {
  std::string key;  ///< in JSON; empty: CSV alone has it
  std::function<nlohmann::ordered_json(const RunRecord&)> value{};
  std::vector<CsvColumn> csv{};  ///< names, and paths in the value or, without a key, in the run
  std::vector<Column<RunRecord>> tables{};  ///< of documents
};
/// In the order of JSON and CSV. Borrows the list.
std::vector<RunColumn> run_columns(const RunList&);

/// At least one run.
Document runs_document(const RunList&);

/// The best run in one piece.
Card runs_card(const RunList&);

/// "0.9400 (0.9234 to 0.9532) on 1,000 images of photos (test part)"; empty without an accuracy.
std::string evaluation_text(const training::EvaluationFacts&);

/// The sentences that come first: the best run, and the quickest to what most runs reached; of
/// each data set, since accuracies on different images say nothing of each other.
std::vector<std::string> runs_headline(const RunList&);

/// A line per run, in the order of the list.
std::string runs_csv(const RunList&);
/// {"runs": [...], "same_configuration": [...], "differences": [...], "left_out": [...]}.
nlohmann::ordered_json runs_json(const RunList&);
/// Loss and accuracy of the first kMostRunCurves runs, for the page: read from their files. Those
/// on one data set are a group, since losses and accuracies on other images say nothing of them.
nlohmann::ordered_json run_curves_json(const RunList&);

// What runs were given or made of otherwise than others, and two of them beside each other.

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

/// More lines than this cannot be told apart.
inline constexpr std::size_t kMostRunCurves = 40;

}  // namespace cputrain::report
