#pragma once

#include <vector>

#include "cli/config.h"
#include "loop/evaluation/answers.h"
#include "loop/evaluation/surest_errors.h"
#include "scaling/report/evaluation/evaluation_page.h"
#include "training/evaluation_part.h"

/// What `eval --page` is made from.
namespace cputrain::cli {

/// The images of those answers, small, with the names of their classes. `set` is what was
/// evaluated, of this data.
std::vector<report::WrongImage> wrong_images(const training::Services&,
                                             const std::vector<loop::WrongAnswer>&,
                                             const data::ImageSet& set, const data::Dataset&,
                                             const std::vector<std::string>& classes);

/// All else, without images.
report::EvaluationFacts evaluation_facts(const Config&, const training::Session&,
                                         const loop::ModelDescription&, const compute::Tally&,
                                         const loop::AnswerCounts&);

}  // namespace cputrain::cli
