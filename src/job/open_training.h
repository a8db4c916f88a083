#pragma once

#include "job/training_plans.h"

namespace cputrain {

/// A training before it is compiled: what is to be trained, on what, in which processes.
struct OpenedTraining {
  TrainingSpec spec;
  Session session;
  DataSource source;
  int classes;
  Graph graph;
  int micro_batch;

  TrainingPlans plans(std::size_t train, std::size_t validation) const {
    return {session, spec, micro_batch, train, validation};
  }
};

/// Opens the data and makes sure that all ranks are about to do the same. Error(usage),
/// Error(data), Error(disagree). Collective.
OpenedTraining open_training(const TrainingFlags&, const Services&);

}  // namespace cputrain
