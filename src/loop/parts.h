#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "comm/communicator.h"
#include "comm/pulse.h"
#include "compute/backend.h"
#include "core/names.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "loop/optimizer.h"
#include "loop/timeline.h"
#include "optim/learning_rate.h"

namespace cputrain::loop {

/// What happens where the gradients of a step are NaN or infinite. `abort`: the training ends.
/// `skip`: the step changes nothing. `rollback`: back to the last checkpoint, and on without it.
enum class NanPolicy { abort, skip, rollback };
constexpr auto names(NanPolicy) {
  return std::to_array<Name<NanPolicy>>(
      {{NanPolicy::abort, "abort"}, {NanPolicy::skip, "skip"}, {NanPolicy::rollback, "rollback"}});
}

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

/// A rank's program, compiled to train, and the ranks that it works with. All of it is borrowed.
struct RankProgram {
  comm::Communicator& communicator;
  compute::Backend& backend;
  compute::Program& program;
  exchange::GradientExchange& exchange;
  FaultPoint fault_point{};
  bool simulated = false;  ///< time is not this machine's: its CPUs are not asked

  bool leads() const { return communicator.rank() == 0; }
  compute::Memory& memory() const { return backend.memory(); }
};

/// What the loop works on. Weights are as the exchange made them until they are filled.
struct Parts : RankProgram {
  /// Borrows what it refers to.
  Parts(const RankProgram& of, const OptimizerOptions& options, const optim::LearningRate& rate,
        std::unique_ptr<data::BatchSource> images, const data::BatchPlan& steps, Timeline& spans)
      : RankProgram(of),
        optimizer(options, backend, exchange, program.layout()),
        learning_rate(rate),
        batches(std::move(images)),
        plan(steps),
        timeline(spans) {}

  Optimizer optimizer;
  optim::LearningRate learning_rate;
  std::unique_ptr<data::BatchSource> batches;
  const data::BatchPlan& plan;
  /// Held while the weights change: its holder sees those of a completed step.
  std::mutex weights_mutex{};
  /// The weights while others lie in their place, to be saved at any time; of rank 0. Set and reset
  /// with the mutex held.
  std::unique_ptr<compute::OwnedArray> aside{};
  Timeline& timeline;  ///< of this rank
};

/// Which step of the training is to be made.
struct StepToDo {
  const data::BatchPlan& plan;  ///< of this epoch
  std::size_t in_epoch;         ///< from 0
  std::uint64_t step;           ///< from 0, over the training
  std::uint64_t updates;        ///< made before it: rules that count steps count these
  std::uint64_t seed;
  double learning_rate;
  NanPolicy on_nan = NanPolicy::abort;
  bool left_out = false;  ///< it changes nothing, whatever its gradients are
};

}  // namespace cputrain::loop
