#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scaling/report/evaluation/evaluation_page.h"
#include "scaling/report/trainings/run_record.h"

/// Evaluations of a run's weights, a line of JSON each, in the run's folder.
namespace cputrain::report {

/// Adds a line; what is there stays. Error(output).
void log_evaluation(const std::filesystem::path& file, const EvaluationFacts&);

/// The newest first, at most 100, and of one file of weights on one part of one data set the newest
/// alone.
/// Where the file may be hostile or cut off, `troubles` says so. None where there is no file.
std::vector<RunEvaluation> read_evaluations(const std::filesystem::path& file,
                                            std::vector<std::string>& troubles);

}  // namespace cputrain::report
