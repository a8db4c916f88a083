#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/program.h"
#include "exchange/exchange.h"
#include "optim/update_rule.h"

namespace cputrain::checkpoint {

/// The ranks of a training and the arrays that a checkpoint has of it. All of it is borrowed.
struct TrainingState {
  comm::Communicator& communicator;
  int nodes;  ///< that the ranks are on
  compute::Backend& backend;
  compute::Program& program;
  exchange::GradientExchange& exchange;
  const optim::UpdateRule& rule;  ///< says which arrays the optimizer keeps

  bool leads() const { return communicator.rank() == 0; }
  compute::Memory& memory() const { return backend.memory(); }
};

}  // namespace cputrain::checkpoint
