#pragma once

#include "scaling/report/forms/document.h"
#include "training/run/run_logs.h"

/// One page about one evaluation of weights: eval --page.
namespace cputrain::report {

/// A matrix of more classes cannot be read: the page has a part of it.
inline constexpr std::size_t kMostInPageMatrix = 40;
/// "0.9643 to 0.9915": what an accuracy on so many images may be among all images like these.
std::string interval_text(double accuracy, double images);
/// "all", "test part".
std::string part_text(const std::string& part);
/// What a reader must know before such an accuracy is believed.
std::string doubt_sentence(const std::string& doubt);

Document evaluation_document(const training::EvaluationFacts&);
std::string evaluation_page(const training::EvaluationFacts&);

}  // namespace cputrain::report
