#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scaling/report/document.h"

/// One page about one evaluation of weights: eval --page.
namespace cputrain::report {

/// A class by its predictions.
struct ClassPredictions {
  std::string name;
  double images = 0, predictions = 0, correct = 0;
};

/// An image whose prediction was wrong.
struct WrongImage {
  Picture picture;   ///< without words
  std::string name;  ///< its file's
  std::string truth, prediction;
  double probability = 0, probability_of_truth = 0;
};

/// What an evaluation came to. Names may be hostile.
struct EvaluationFacts {
  std::string model, weights, data, part, machine, backend, date, build, command;
  std::string doubt;  ///< why training may have learnt from these images; or empty
  double images = 0, correct = 0, loss = 0;
  double undecided = 0;  ///< images whose predictions were NaN
  std::optional<double> accuracy{}, among_five{};
  std::vector<ClassPredictions> classes;
  /// A row an actual class, a column a prediction; empty where classes are too many for it.
  std::vector<std::vector<double>> matrix;
  std::vector<WrongImage> surest_errors;  ///< the surest first
};

/// A matrix of more classes cannot be read: the page has a part of it.
inline constexpr std::size_t kMostInPageMatrix = 40;
/// Images that the page shows at most, and the pixels of their longer sides.
inline constexpr std::size_t kMostErrors = 24;
inline constexpr int kLongestSide = 128;

/// "all", "test part".
std::string part_text(const std::string& part);
/// What a reader must know before such an accuracy is believed.
std::string doubt_sentence(const std::string& doubt);

Document evaluation_document(const EvaluationFacts&);
std::string evaluation_page(const EvaluationFacts&);

}  // namespace cputrain::report
