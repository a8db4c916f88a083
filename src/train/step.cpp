#include "train/step.h"

#include <array>
#include <utility>

#include "system/clock.h"
#include "train/faults.h"
#include "train/penalty.h"
#include "train/safety/lost_input.h"
#include "train/safety/update_gate.h"

namespace cputrain::train {
namespace {

/// Adds up over ranks what every rank must know after a step. Algorithms that rank 0 has found to
/// be the quickest are then used by all. `result.trying` comes as what this rank's program did.
void agree(comm::Communicator& communicator, compute::Program& program, StepResult& result) {
  const bool leads = communicator.rank() == 0;
  const std::string findings = program.tuner().take_findings();
  double stop = result.stop, checkpoint = leads && result.checkpoint;
  double trying = leads && result.trying, found = leads && !findings.empty();
  const auto [loss, correct, images, among_five, ranked] = result.tally.sums();
  comm::sum_numbers(communicator, std::array{loss, correct, images, among_five, ranked, &stop,
                                             &checkpoint, &trying, &found});
  result.stop = stop > 0;
  result.checkpoint = checkpoint > 0;
  result.trying = trying > 0;
  if (found > 0) program.tuner().use_findings(communicator.gather(findings).front());
}

/// A place for faults, of which a step has each once.
void at(const TrainingParts& parts, const StepToDo& todo, FaultPhase phase,
        double* loss_scale = nullptr) {
  const compute::Arenas arenas = parts.exchange.arenas();
  fault_point({phase, parts.communicator.rank(), todo.step + 1, &parts.backend.memory(),
               arenas.weights.slice(0, arenas.gradients.size), loss_scale});
}

/// Whether an image was not the data's on some rank. Asked before gradients travel: what
/// compression does not send at once would stay with later steps.
bool is_input_lost(const TrainingParts& parts, StepResult& result) {
  if (!parts.batches.may_fail()) return false;
  const system::Stopwatch watch;
  result.lost_input = lost_input(parts.batches, parts.communicator);
  const double waited = watch.seconds();
  result.budget.straggler_wait += waited;
  result.waited += waited;
  parts.timeline.ended("agree on data");
  return !result.lost_input.empty();
}

/// Gradients of this rank's share, micro-batch by micro-batch; they begin to travel during the
/// last, unless its images are lost. On a device the parts of the budget are what it takes to
/// enqueue passes, and backward's has the one wait, for the tally.
void compute_gradients(const TrainingParts& parts, const StepToDo& todo, StepResult& result) {
  system::Stopwatch watch;
  const compute::Pass pass{compute::Phase::train, todo.seed, todo.step};
  double loss_scale = 1.0 / static_cast<double>(todo.plan.images(todo.in_epoch));
  const int micro_batches = todo.plan.micro_batches(todo.in_epoch);
  double waited = parts.program.waited();
  // Sharded layers wait for other ranks inside a pass: that time is the stragglers'.
  const auto computed = [&](const char* what, double& part) {
    const double before = std::exchange(waited, parts.program.waited());
    const double waits = waited - before;
    result.budget.straggler_wait += waits;
    result.waited += waits;
    part += watch.lap() - waits;
    parts.timeline.ended(what);
  };
  const auto begin = [&](int k, FaultPhase phase) {
    if (k == 0) at(parts, todo, phase, &loss_scale);
  };
  for (int k = 0; k < micro_batches; ++k) {
    begin(k, FaultPhase::input);
    const compute::MicroBatch& batch = parts.batches.next();
    result.budget.input_wait += watch.lap();
    parts.timeline.ended("wait for data");
    const bool last = k + 1 == micro_batches;
    if (last && is_input_lost(parts, result)) break;
    watch.lap();
    begin(k, FaultPhase::forward);
    parts.program.forward(batch, pass);
    computed("forward", result.budget.forward);
    begin(k, FaultPhase::backward);
    const compute::Accumulate accumulate = parts.exchange.begin(k, last);
    parts.program.backward(loss_scale, accumulate, [&](std::size_t n, compute::Event* after) {
      parts.timeline.ended("backward");
      parts.exchange.ready(n, after);
      parts.timeline.ended("exchange");
    });
    computed("backward", result.budget.backward);
  }
  watch.lap();
  result.tally = parts.program.tally();  // that of a step that is given up is let go of
  result.budget.backward += watch.lap();
}

/// Sums over ranks, what must be known of all of them, and new weights.
void exchange_and_update(const TrainingParts& parts, const StepToDo& todo, StepResult& result) {
  at(parts, todo, FaultPhase::exchange);
  UpdateGate gate(parts, todo);
  // Taken when the first weights change, not while waiting for other ranks, which may be gone.
  std::unique_lock weights_change(parts.weights_mutex, std::defer_lock);
  const exchange::ExchangeTimes times = parts.exchange.finish(gate.measures(), [&](Range owned) {
    if (!gate.open()) return;
    if (!weights_change.owns_lock()) {
      weights_change.lock();
      at(parts, todo, FaultPhase::update);
    }
    parts.optimizer.update(owned);
  });
  if (!weights_change.owns_lock()) weights_change.lock();
  if (gate.open()) {
    parts.program.publish_statistics();
  } else {
    gate.undo();
  }
  result.skipped = !gate.open();
  result.budget.backward -= times.within_ready;
  result.budget.straggler_wait += times.straggler_wait;
  result.waited += times.waits;
  result.budget.allreduce_exposed = times.allreduce_exposed;
  result.budget.optimizer += times.optimizer;
}

}  // namespace

StepResult run_step(const TrainingParts& parts, const StepToDo& todo,
                    const std::function<StepWishes()>& wishes) {
  const system::Stopwatch whole;
  StepResult result;
  parts.timeline.begin_step(todo.step + 1);
  result.trying = parts.program.tuner().trying();  // asked before: trials may end within the step
  compute_gradients(parts, todo, result);
  if (!result.lost_input.empty()) return result;

  system::Stopwatch watch;
  const double penalty =
      l2_penalty(parts.backend, parts.program.layout(), parts.exchange.arenas().weights);
  result.budget.optimizer = watch.lap();
  parts.timeline.ended("penalty");
  exchange_and_update(parts, todo, result);
  parts.timeline.ended("exchange and update");

  result.own_images = result.tally.images;
  const StepWishes wanted = wishes();
  result.stop = wanted.stop;
  result.checkpoint = wanted.checkpoint;
  watch.lap();
  agree(parts.communicator, parts.program, result);
  result.waited += watch.lap();
  parts.timeline.ended("agree");
  result.tally.loss += penalty * result.tally.images;
  result.seconds = whole.seconds();
  result.budget.other = result.seconds - result.budget.known();
  return result;
}

}  // namespace cputrain::train
