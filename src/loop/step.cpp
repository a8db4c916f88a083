#include "loop/step.h"

#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "loop/replicas.h"
#include "loop/update_gate.h"

namespace cputrain::loop {
namespace {

using comm::Phase;

/// How the weights of a step change. It is made when all is known but the last gradients.
struct WeightsChange {
  WeightsChange(Parts& parts, const StepToDo& todo)
      : gate(parts, todo),
        lock(parts.weights_mutex, std::defer_lock),
        sums(parts.exchange.pass_sums(todo.plan.last_images(todo.in_epoch))) {
    if (!gate.always_open() || !parts.exchange.sums_in_backward()) return;
    in_backward = parts.optimizer.whole_update();
    if (in_backward) lock.lock();
  }

  UpdateGate gate;
  std::unique_lock<std::mutex> lock;  ///< held from the first change of weights on
  compute::PassSums* sums;            ///< the last backward pass's
  /// Where nothing comes between the gradients and the update.
  std::optional<compute::StepUpdate> in_backward;
};

/// A step until its weights are updated.
class Step {
 public:
  Step(Parts& parts, Observer& observer, const StepToDo& todo)
      : parts_(parts), observer_(observer), todo_(todo) {}

  StepResult run() {
    observer_.begin_step(todo_.step + 1);
    result_.trying = parts_.program.tuner().trying();  // before: trials may end within the step
    result_.filling = parts_.batches->filling();
    system::Stopwatch watch;
    result_.tally.penalty =
        l2_penalty(parts_.backend, parts_.program.layout(), parts_.exchange.arenas().weights);
    result_.budget.optimizer = watch.lap();
    compute_gradients();
    if (!result_.lost_input.empty()) {
      observer_.end_step();
    } else {
      exchange_and_update();
    }
    return std::move(result_);
  }

 private:
  /// Gradients of this rank's share, micro-batch by micro-batch; they begin to travel during the
  /// last, unless its images are lost. On a device the parts of the budget are what it takes to
  /// enqueue passes, and backward's has the one wait, for the tally.
  void compute_gradients() {
    const compute::Pass pass{compute::Phase::train, todo_.seed, todo_.step};
    double loss_scale = 1.0 / static_cast<double>(todo_.plan.images(todo_.in_epoch));
    const int micro_batches = todo_.plan.micro_batches(todo_.in_epoch);
    watch_.lap();
    waited_ = parts_.program.waited();
    for (int k = 0; k < micro_batches; ++k) {
      observer_.at(Phase::input, &loss_scale);
      const compute::MicroBatch& batch = parts_.batches->next();
      result_.budget.input_wait += watch_.lap();
      const bool last = k + 1 == micro_batches;
      if (last && is_input_lost()) break;
      watch_.lap();
      observer_.at(Phase::forward, &loss_scale);
      result_.own_images += batch.size();
      parts_.program.forward(batch, pass);
      add_pass(result_.budget.forward);
      observer_.at(Phase::backward, &loss_scale);
      if (last) change_.emplace(parts_, todo_);
      parts_.program.backward(
          {.loss_scale = loss_scale,
           .accumulate = parts_.exchange.begin(k, last),
           .ready =
               [&](std::size_t n, compute::Event* after) {
                 observer_.part("exchange");
                 parts_.exchange.ready(n, after);
                 observer_.part("backward");
               },
           .sums = last ? change_->sums : nullptr,
           .update = last && change_->in_backward ? &*change_->in_backward : nullptr});
      add_pass(result_.budget.backward);
    }
    result_.tally.images = parts_.program.tally();  // that of a step that is given up is let go of
  }

  /// Sharded layers wait for other ranks inside a pass: that time is the stragglers'.
  void add_pass(double& part) {
    const double before = std::exchange(waited_, parts_.program.waited());
    const double waits = waited_ - before;
    result_.budget.straggler_wait += waits;
    result_.waited += waits;
    part += watch_.lap() - waits;
  }

  /// Whether an image was not the data's on some rank. Asked before gradients travel: what
  /// compression does not send at once would stay with later steps.
  bool is_input_lost() {
    if (!parts_.batches->may_fail()) return false;
    observer_.part("agree on data");
    const system::Stopwatch watch;
    result_.lost_input = lost_input(*parts_.batches, parts_.communicator);
    const double waited = watch.seconds();
    result_.budget.straggler_wait += waited;
    result_.waited += waited;
    return !result_.lost_input.empty();
  }

  /// Sums over ranks, what must be known of all of them, and new weights.
  void exchange_and_update() {
    observer_.at(Phase::exchange);
    UpdateGate& gate = change_->gate;
    std::unique_lock<std::mutex>& lock = change_->lock;
    const exchange::ExchangeTimes times = parts_.exchange.finish(gate.measures(), [&](Range own) {
      if (!gate.open()) return;
      // Not while waiting for other ranks, which may be gone.
      if (!lock.owns_lock()) lock.lock();
      observer_.at(Phase::update);
      if (!change_->in_backward) parts_.optimizer.update(own);
      parts_.optimizer.average(own);
    });
    if (!lock.owns_lock()) lock.lock();
    if (gate.open()) {
      parts_.program.publish_statistics();
    } else {
      gate.undo();
    }
    lock.unlock();
    result_.skipped = !gate.open();
    result_.budget.backward -= times.within_ready;
    result_.budget.straggler_wait += times.straggler_wait;
    result_.waited += times.waits;
    result_.budget.allreduce_exposed = times.allreduce_exposed;
    result_.budget.optimizer += times.optimizer;
  }

  Parts& parts_;
  Observer& observer_;
  const StepToDo& todo_;
  StepResult result_;
  system::Stopwatch watch_;
  double waited_ = 0;  ///< the program's, until the last pass
  std::optional<WeightsChange> change_;
};

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

}  // namespace

StepResult run_step(Parts& parts, Observer& observer, const StepToDo& todo) {
  return Step(parts, observer, todo).run();
}

compute::Tally agree(const RankProgram& parts, Observer& observer, const StepWishes& wishes,
                     const StepTally& before, StepResult& step) {
  observer.at(Phase::agree);
  system::Stopwatch watch;
  Arrived arrived = wait_for(before);
  step.budget.backward += watch.lap();
  const bool leads = parts.leads();
  compute::Tuner& tuner = parts.program.tuner();
  const std::string tuned_methods = tuner.take_tuned_methods();
  double stop = wishes.stop, checkpoint = leads && wishes.checkpoint;
  double trying = leads && step.trying, found = leads && !tuned_methods.empty();
  const auto [loss, correct, images, among_five, ranked] = arrived.tally.sums();
  comm::sum_numbers(parts.communicator, std::array{loss, correct, images, among_five, ranked, &stop,
                                                   &checkpoint, &trying, &found});
  add_penalty(arrived.tally, arrived.penalty);
  step.stop = stop > 0;
  step.checkpoint = checkpoint > 0;
  step.trying = trying > 0;
  if (found > 0) tuner.use_tuned_methods(parts.communicator.gather(tuned_methods).front());
  step.waited += watch.lap();
  observer.end_step();
  step.seconds = step.since_begin.seconds();
  step.budget.other = step.seconds - step.budget.known();
  return arrived.tally;
}

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

compute::Pending<double> l2_penalty(compute::Backend& backend,
                                    const compute::ParameterLayout& layout, const Array& weights) {
  std::vector<Array> kernels;
  std::vector<double> factors;
  for (const compute::Parameter& parameter : layout.parameters) {
    if (parameter.l2 == 0 || !parameter.learnt) continue;
    kernels.push_back(weights.slice(parameter.range.begin, parameter.range.end));
    factors.push_back(static_cast<double>(parameter.l2));
  }
  if (kernels.empty()) return 0.0;
  return compute::Pending<double>([factors, sums = backend.sums_of_squares(kernels)] {
    return std::inner_product(factors.begin(), factors.end(), sums.wait().begin(), 0.0);
  });
}

}  // namespace cputrain::loop
