#pragma once

#include <cstdint>

#include "compute/memory.h"

namespace cputrain::train {

/// Where in its work a rank is. Within a step they follow each other in this order. A device may
/// have been given the update with backward (compute::Backward::update): then exchange and update
/// are places behind that, and what is done to weights there comes behind the new ones.
enum class FaultPhase { input, forward, backward, exchange, update, checkpoint, validate };

/// What may be broken there.
struct FaultPlace {
  FaultPhase phase = FaultPhase::input;
  int rank = 0;
  std::uint64_t step = 0;  ///< from 1: of the step, or made before the validation or checkpoint
  compute::Memory* memory = nullptr;  ///< of the weights; null where there are none at hand
  Array weights{};                    ///< what is learnt of this rank's arena
  double* loss_scale = nullptr;       ///< of a step whose gradients are still to be computed
};

/// Called at every phase of every step, once, and by whoever writes a checkpoint, from any thread.
/// It does nothing; a program of the tests links another one before the library, which breaks what
/// it is told to (tests/support/faults.cpp). `update` is that of the first weights of a rank, so a
/// rank that owns none has no such phase.
void fault_point(const FaultPlace&);

}  // namespace cputrain::train
