#include "loop/step.h"

#include <array>
#include <optional>
#include <utility>

#include "loop/faults.h"
#include "loop/penalty.h"
#include "loop/safety/lost_input.h"
#include "loop/safety/update_gate.h"
#include "system/clock.h"

namespace cputrain::loop {
namespace {

/// A StepTally that has come.
struct Arrived {
  compute::Tally tally;
  double penalty;
};

Arrived wait_for(const StepTally& own) { return {own.images.wait(), own.penalty.wait()}; }

void add_penalty(compute::Tally& tally, double penalty) { tally.loss += penalty * tally.images; }

compute::Tally add_up(comm::Communicator& communicator, Arrived own) {
  comm::sum_numbers(communicator, own.tally.sums());
  add_penalty(own.tally, own.penalty);
  return own.tally;
}

/// Adds up over ranks what every rank must know after a step, and the sums of the step before.
/// Algorithms that rank 0 has found to be the quickest are then used by all. `result.trying` comes
/// as what this rank's program did.
void agree(const TrainingParts& parts, const StepTally& before, StepResult& result) {
  system::Stopwatch watch;
  const Arrived arrived = wait_for(before);
  result.before = arrived.tally;
  result.budget.backward += watch.lap();
  const bool leads = parts.communicator.rank() == 0;
  compute::Tuner& tuner = parts.program.tuner();
  const std::string findings = tuner.take_findings();
  double stop = result.stop, checkpoint = leads && result.checkpoint;
  double trying = leads && result.trying, found = leads && !findings.empty();
  const auto [loss, correct, images, among_five, ranked] = result.before.sums();
  comm::sum_numbers(parts.communicator, std::array{loss, correct, images, among_five, ranked, &stop,
                                                   &checkpoint, &trying, &found});
  add_penalty(result.before, arrived.penalty);
  result.stop = stop > 0;
  result.checkpoint = checkpoint > 0;
  result.trying = trying > 0;
  if (found > 0) tuner.use_findings(parts.communicator.gather(findings).front());
  result.waited += watch.lap();
}

using comm::Phase;

/// This rank has come to a phase of a step.
void at(const TrainingParts& parts, const StepToDo& todo, Phase phase) {
  parts.communicator.pulse().at(phase, todo.step + 1);
  if (parts.timeline.wanted()) parts.backend.name_work(name_of(phase).data());
}

/// The same for the first time in this step: a place for faults.
void first_at(const TrainingParts& parts, const StepToDo& todo, Phase phase,
              double* loss_scale = nullptr) {
  at(parts, todo, phase);
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

/// How the weights of a step change. It is made when all is known but the last gradients.
struct WeightsChange {
  WeightsChange(const TrainingParts& parts, const StepToDo& todo)
      : gate(parts, todo),
        lock(parts.weights_mutex, std::defer_lock),
        sums(parts.exchange.pass_sums(todo.plan.last_images(todo.in_epoch))) {
    if (!gate.always_open() || !parts.exchange.sums_in_backward()) return;
    in_backward = parts.optimizer.whole_update();
    if (in_backward) lock.lock();
  }

  UpdateGate gate;
  std::unique_lock<std::mutex> lock;  ///< held from the first change of weights on
  compute::PassSums* sums;            ///< of the last backward pass
  /// Where nothing comes between the gradients and the update.
  std::optional<compute::StepUpdate> in_backward;
};

/// Gradients of this rank's share, micro-batch by micro-batch; they begin to travel during the
/// last, unless its images are lost. On a device the parts of the budget are what it takes to
/// enqueue passes, and backward's has the one wait, for the tally.
void compute_gradients(const TrainingParts& parts, const StepToDo& todo, StepResult& result,
                       std::optional<WeightsChange>& change) {
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
  const auto begin = [&](int k, Phase phase) {
    k == 0 ? first_at(parts, todo, phase, &loss_scale) : at(parts, todo, phase);
  };
  for (int k = 0; k < micro_batches; ++k) {
    begin(k, Phase::input);
    const compute::MicroBatch& batch = parts.batches.next();
    result.budget.input_wait += watch.lap();
    parts.timeline.ended("wait for data");
    const bool last = k + 1 == micro_batches;
    if (last && is_input_lost(parts, result)) break;
    watch.lap();
    begin(k, Phase::forward);
    result.own_images += batch.size();
    parts.program.forward(batch, pass);
    computed("forward", result.budget.forward);
    begin(k, Phase::backward);
    if (last) change.emplace(parts, todo);
    parts.program.backward(
        {.loss_scale = loss_scale,
         .accumulate = parts.exchange.begin(k, last),
         .ready =
             [&](std::size_t n, compute::Event* after) {
               parts.timeline.ended("backward");
               parts.exchange.ready(n, after);
               parts.timeline.ended("exchange");
             },
         .sums = last ? change->sums : nullptr,
         .update = last && change->in_backward ? &*change->in_backward : nullptr});
    computed("backward", result.budget.backward);
  }
  result.tally.images = parts.program.tally();  // that of a step that is given up is let go of
}

/// Sums over ranks, what must be known of all of them, and new weights.
void exchange_and_update(const TrainingParts& parts, const StepToDo& todo, StepResult& result,
                         WeightsChange& change) {
  first_at(parts, todo, Phase::exchange);
  UpdateGate& gate = change.gate;
  bool first = true;
  const exchange::ExchangeTimes times = parts.exchange.finish(gate.measures(), [&](Range owned) {
    if (!gate.open()) return;
    // Not while waiting for other ranks, which may be gone.
    if (!change.lock.owns_lock()) change.lock.lock();
    if (std::exchange(first, false)) first_at(parts, todo, Phase::update);
    if (!change.in_backward) parts.optimizer.update(owned);
  });
  if (!change.lock.owns_lock()) change.lock.lock();
  if (gate.open()) {
    parts.program.publish_statistics();
  } else {
    gate.undo();
  }
  change.lock.unlock();
  result.skipped = !gate.open();
  result.budget.backward -= times.within_ready;
  result.budget.straggler_wait += times.straggler_wait;
  result.waited += times.waits;
  result.budget.allreduce_exposed = times.allreduce_exposed;
  result.budget.optimizer += times.optimizer;
}

}  // namespace

compute::Tally add_up(comm::Communicator& communicator, const StepTally& own) {
  return add_up(communicator, wait_for(own));
}

compute::Tally finish_step(comm::Communicator& communicator, StepResult& step) {
  system::Stopwatch watch;
  const Arrived own = wait_for(step.tally);
  const double computed = watch.lap();
  const compute::Tally tally = add_up(communicator, own);
  const double agreed = watch.lap();
  step.budget.backward += computed;
  step.budget.other += agreed;
  step.waited += agreed;
  step.seconds += computed + agreed;
  return tally;
}

StepResult run_step(const TrainingParts& parts, const StepToDo& todo, const StepTally& before,
                    const std::function<StepWishes()>& wishes) {
  const system::Stopwatch whole;
  StepResult result;
  parts.timeline.begin_step(todo.step + 1);
  result.trying = parts.program.tuner().trying();  // asked before: trials may end within the step
  system::Stopwatch watch;
  result.tally.penalty =
      l2_penalty(parts.backend, parts.program.layout(), parts.exchange.arenas().weights);
  result.budget.optimizer = watch.lap();
  parts.timeline.ended("penalty");
  std::optional<WeightsChange> change;
  compute_gradients(parts, todo, result, change);
  if (!result.lost_input.empty()) return result;
  exchange_and_update(parts, todo, result, *change);
  parts.timeline.ended("exchange and update");

  const StepWishes wanted = wishes();
  result.stop = wanted.stop;
  result.checkpoint = wanted.checkpoint;
  first_at(parts, todo, Phase::agree);
  agree(parts, before, result);
  parts.timeline.ended("agree");
  result.seconds = whole.seconds();
  result.budget.other = result.seconds - result.budget.known();
  return result;
}

}  // namespace cputrain::loop
