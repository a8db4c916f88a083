#pragma once

#include <functional>
#include <span>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/program.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"

namespace cputrain {

/// Hears this rank's answers: labels of some images, and what the network said about each (one row
/// an image).
using AnswerObserver =
    std::function<void(std::span<const std::int32_t> labels, std::span<const float> outputs)>;

/// Loss and accuracy over every image exactly once, whatever the number of ranks.
Tally evaluate(Program&, BatchSource&, const BatchPlan&, Communicator&,
               const AnswerObserver& observer = {});

/// Collective: adds the L2 penalty to a tally over all ranks. Where weights of some rank are not
/// numbers the loss is none either, whatever the images gave: layers can hide such weights.
void add_loss_of_weights(Tally&, Backend&, const ParameterLayout&, const Array& weights,
                         Communicator&);

}  // namespace cputrain
