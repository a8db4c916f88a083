#pragma once

#include <cstdint>
#include <functional>

#include "comm/pulse.h"
#include "compute/memory.h"

namespace cputrain::loop {

/// What may be broken at a phase. A device may have been given the update with backward
/// (compute::Backward::update): then exchange and update are places behind that, and what is done
/// to weights there comes behind the new ones.
struct FaultPlace {
  comm::Phase phase = comm::Phase::input;
  int rank = 0;
  std::uint64_t step = 0;  ///< from 1: of the step, or made before the validation or checkpoint
  compute::Memory* memory = nullptr;  ///< the weights'; null where there are none at hand
  Array weights{};                    ///< what is learnt of this rank's arena
  double* loss_scale = nullptr;       ///< for a step whose gradients are still to be computed
};

/// Called at every phase from input to agree of every step, once, at validation and decoding, and
/// by the writer of a checkpoint, from any thread. `update` is that of the first weights of a rank,
/// so a rank that owns none has no such phase. A program of the tests breaks what it is told to
/// (tests/support/faults.cpp); elsewhere it is empty.
using FaultPoint = std::function<void(const FaultPlace&)>;

}  // namespace cputrain::loop
