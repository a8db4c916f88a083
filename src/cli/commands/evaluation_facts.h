#pragma once

#include <vector>

#include "cli/config.h"
#include "job/evaluation_part.h"
#include "report/evaluation/evaluation_page.h"
#include "train/evaluation/answers.h"
#include "train/evaluation/surest_errors.h"

/// What `eval --page` is made from.
namespace cputrain::cli {

/// The images of those answers, small, with the names of their classes. `set` is what was
/// evaluated, of this data.
std::vector<report::WrongImage> wrong_images(const job::Services&,
                                             const std::vector<train::WrongAnswer>&,
                                             const data::ImageSet& set, const data::Dataset&,
                                             const std::vector<std::string>& classes);

/// All else, without images.
report::EvaluationFacts evaluation_facts(const Config&, const job::Session&,
                                         const train::ModelDescription&, const compute::Tally&,
                                         const train::AnswerCounts&);

}  // namespace cputrain::cli
