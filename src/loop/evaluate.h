#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/program.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"

namespace cputrain::loop {

/// Hears this rank's predictions: labels of some images, and what the network said about each (one
/// row an image). On a device probabilities take time to fetch.
using PredictionObserver =
    std::function<void(std::span<const std::int32_t> labels, std::span<const float> outputs)>;

/// What an evaluation asks and calls as it goes on; what is empty is left out.
struct EvaluationCalls {
  /// Before each batch: false ends it. All ranks answer alike.
  std::function<bool()> goes_on{};
  /// After each micro-batch: how many images of this rank it had.
  std::function<void(int images)> progress{};
  PredictionObserver predictions{};
};

/// Loss and accuracy over every image exactly once, whatever the number of ranks; nothing where it
/// did not go on, or some image was not the data's any more.
std::optional<compute::Tally> evaluate_while(const EvaluationCalls&, compute::Program&,
                                             data::BatchSource&, const data::BatchPlan&,
                                             comm::Communicator&);
/// The same to its end. Error(data) where some image was not the data's any more.
compute::Tally evaluate(compute::Program&, data::BatchSource&, const data::BatchPlan&,
                        comm::Communicator&, const PredictionObserver& observer = {});

/// What a smaller mean of probabilities counts as: a loss of 87.3. The program's own losses have no
/// such bound, but a mean of probabilities is made of floats.
inline constexpr float kLeastProbability = std::numeric_limits<float>::min();

/// The same of images and their mirror images: the second source gives the images of the first one,
/// mirrored. Predictions are the means of both probabilities, and the loss is that of these means.
compute::Tally evaluate_mirrored(compute::Program&, data::BatchSource&, data::BatchSource& mirrored,
                                 const data::BatchPlan&, comm::Communicator&,
                                 const PredictionObserver& observer);

/// Collective: adds the L2 penalty to a tally over all ranks. Where weights of some rank are
/// NaN or infinite, the loss is NaN, whatever the images gave: layers can hide such weights.
void add_loss_of_weights(compute::Tally&, compute::Backend&, const compute::ParameterLayout&,
                         const Array& weights, comm::Communicator&);

}  // namespace cputrain::loop
