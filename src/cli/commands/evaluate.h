#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compute/tally.h"
#include "loop/evaluate.h"
#include "training/run/run_logs.h"
#include "training/session/session.h"
#include "weights/description.h"

namespace cputrain::commands {

struct Evaluation {
  compute::Tally tally;  ///< the loss of the images alone; NaN where weights are
  loop::PredictionCounts counts;
  std::optional<double> auc{};                      ///< of two classes, where it is known
  std::size_t skipped;                              ///< images that could not be read
  std::vector<training::WrongImage> surest_errors;  ///< on rank 0
  double least_likely = 0;  ///< images whose loss was cut: see evaluate_mirrored()
  double penalty = 0;       ///< the L2 penalty of all weights, which is no part of the loss above
};

/// Loss and predictions of saved weights on the source's validation part, by all ranks, with
/// `most_errors` of the images that were most surely predicted wrong. `flips`: each image is looked
/// at with its mirror image, too. Collective.
Evaluation evaluate_images(const training::TrainingFlags&, const training::Session&,
                           const weights::ModelDescription&, const data::DataSource&, bool flips,
                           std::size_t most_errors);

/// Without part, backend and doubt.
training::EvaluationFacts evaluation_facts(const training::TrainingFlags&, const training::Session&,
                                           const weights::ModelDescription&, const Evaluation&);

}  // namespace cputrain::commands
