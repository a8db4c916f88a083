#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/graph.h"
#include "tests/golden/numbers.h"
#include "tests/golden/replica.h"

/// What make_models.py wrote (PyTorch, double) of the built-in models.
namespace cputrain::golden {

/// Relative errors of a float computation against the same in double.
struct FloatError {
  double loss, logits;
  double moving;  ///< moving statistics after the pass; 0 where there are none
  double whole;   ///< norm of the whole gradient's error over its norm
  double worst;   ///< the same of the tensor where it is largest
};

/// Forward and backward of one batch, from the first weights.
struct TrainingPass {
  int first, batch;                 ///< images first .. first+batch-1
  std::vector<std::string> frozen;  ///< layers
  double loss, correct;             ///< mean; number of correct predictions
  std::vector<double> logits;       ///< images x classes, minus each image's mean
  /// By parameter: the gradient; of moving statistics their new value; of other frozen ones
  /// nothing. Empty: only the error in float is of interest.
  std::vector<std::optional<Sums>> tensors;
  FloatError pytorch;  ///< its largest over some orders of the images
};

struct Evaluation {
  int first, batch;
  std::vector<double> logits;
  double pytorch;  ///< its error in float, of the logits
};

/// Steps with Keras' SGD.
struct ModelTraining {
  Update update;
  int batch;
  std::vector<double> losses;
  std::vector<Sums> changes;  ///< of every parameter since the start
};

struct ModelFigures {
  model::Graph graph;  ///< dropout rates 0
  int classes;
  std::uint64_t seed;
  std::vector<std::string> parameters;
  std::vector<TrainingPass> passes;
  FloatError pytorch;  ///< its largest over these and more passes
  Evaluation evaluation;
  std::vector<ModelTraining> trainings;
};

/// `name`: of a built-in model.
ModelFigures load_model(const std::string& name);

/// Images x classes, minus each image's mean, from probabilities (one column: of class 1).
std::vector<double> logits_from(std::span<const float> probabilities, int images, int classes);

/// Subtracts each image's mean: what a softmax does not see.
void centre(std::vector<double>& logits, int classes);

}  // namespace cputrain::golden
