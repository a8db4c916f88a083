#pragma once

#include "cli/training_plans.h"

namespace cputrain {

/// A training before it is compiled: what is to be trained, on what, in which processes.
struct OpenedTraining {
  TrainingChoices choices;
  Session session;
  DataSource source;
  int classes;
  Graph graph;
  int micro_batch;

  TrainingPlans plans(const Config& config, std::size_t train, std::size_t validation) const {
    return {session, config, choices, micro_batch, train, validation};
  }
};

/// Opens the data and makes sure that all ranks are about to do the same. Error(usage),
/// Error(data), Error(disagree). Collective.
OpenedTraining open_training(const Config&, const Services&);

}  // namespace cputrain
