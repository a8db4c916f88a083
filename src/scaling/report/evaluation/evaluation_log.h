#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scaling/report/trainings/run_record.h"

namespace cputrain::report {

/// Evaluations that a run's folder keeps (training/run/evaluation_log.h). The newest first, at most
/// 100, and of one file of weights on one part of one data set the newest alone. Where the file may
/// be hostile or cut off, `troubles` says so. None where there is no file.
std::vector<RunEvaluation> read_evaluations(const std::filesystem::path& file,
                                            std::vector<std::string>& troubles);

}  // namespace cputrain::report
