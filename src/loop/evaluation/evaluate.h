#pragma once

#include <functional>
#include <optional>
#include <span>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/program.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"

namespace cputrain::loop {

/// Hears this rank's answers: labels of some images, and what the network said about each (one row
/// an image). On a device answers take time to fetch.
using AnswerObserver =
    std::function<void(std::span<const std::int32_t> labels, std::span<const float> outputs)>;
/// Hears after each micro-batch how many images of this rank it had.
using EvaluationProgress = std::function<void(int images)>;

/// Loss and accuracy over every image exactly once, whatever the number of ranks. Error(data) where
/// some image was not the data's any more.
compute::Tally evaluate(compute::Program&, data::BatchSource&, const data::BatchPlan&,
                        comm::Communicator&, const AnswerObserver& observer = {});
/// The same without answers, unless `goes_on`, which all ranks ask before each batch and answer
/// alike, says that it does not, or an image was not the data's any more: nothing then.
std::optional<compute::Tally> evaluate_while(const std::function<bool()>& goes_on,
                                             compute::Program&, data::BatchSource&,
                                             const data::BatchPlan&, comm::Communicator&,
                                             const EvaluationProgress&);

/// Collective: adds the L2 penalty to a tally over all ranks. Where weights of some rank are not
/// numbers the loss is none either, whatever the images gave: layers can hide such weights.
void add_loss_of_weights(compute::Tally&, compute::Backend&, const compute::ParameterLayout&,
                         const Array& weights, comm::Communicator&);

}  // namespace cputrain::loop
