#include "loop/step.h"

#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exchange/compression/compression.h"
#include "loop/replicas.h"

namespace cputrain::loop {
namespace {

using comm::Phase;

/// What the timeline calls it. Updates come within an exchange, slice by slice.
const char* span_of(comm::Phase phase) {
  if (phase == comm::Phase::input) return "wait for data";
  if (phase == comm::Phase::exchange) return "exchange and update";
  return comm::name_of(phase).data();
}

/// Training passes have moved batch norm's statistics on the side: they are let go of.
void drop_statistics(const RankProgram& parts) {
  const Array weights = parts.exchange.arenas().weights;
  compute::Memory& memory = parts.memory();
  std::vector<std::vector<double>> kept;
  const auto& parameters = parts.program.layout().parameters;
  const auto of = [&](const compute::Parameter& p) {
    return weights.slice(p.range.begin, p.range.end);
  };
  for (const compute::Parameter& p : parameters) {
    if (p.averaged) kept.push_back(compute::read_numbers(memory, of(p)));
  }
  parts.program.publish_statistics();
  std::size_t next = 0;
  for (const compute::Parameter& p : parameters) {
    if (p.averaged) compute::write_numbers(memory, kept[next++], of(p));
  }
}

/// Decides, on all ranks alike and before any weight changes, whether a step updates them: not
/// where it is left out, and not where the policy forbids it because some gradient, summed over
/// ranks, is NaN or infinite, or too large to be squared in double precision. With NanPolicy::abort
/// no rank looks. Optimizers count updates: the step behind one that changes nothing has its
/// number.
class UpdateGate {
 public:
  /// Has the optimizer begin the step. Borrows both.
  UpdateGate(Parts& parts, const StepToDo& todo)
      : parts_(parts), todo_(todo), rate_before_(parts.optimizer.last_rate()) {
    parts.optimizer.begin_step(todo.updates, todo.learning_rate);
    if (todo.on_nan == NanPolicy::abort || todo.left_out) return;
    measures_.push_back([this] { return look(); });
    for (const exchange::Measure& measure : parts.optimizer.measures()) {
      measures_.push_back(
          [this, &measure] { return open() ? measure() : std::span(&nothing_, 1); });
    }
  }
  UpdateGate(const UpdateGate&) = delete;  // measures refer to it
  UpdateGate& operator=(const UpdateGate&) = delete;

  /// For the exchange: the look, then those of the optimizer, which may change its state and are
  /// therefore left out where the look has closed the gate.
  std::span<const exchange::Measure> measures() const {
    if (todo_.left_out) return {};
    return measures_.empty() ? parts_.optimizer.measures() : measures_;
  }
  /// Whether weights are updated whatever the gradients are, and without a measure.
  bool always_open() const { return !todo_.left_out && measures().empty(); }
  /// Whether weights are updated. Known once the exchange has called the first measure.
  bool open() const { return !todo_.left_out && bad_ == 0; }
  /// Puts back what the step has moved all the same: moving statistics and the optimizer's rate.
  /// Compression keeps what is finite, since others got their part of it. The caller holds the
  /// weights' mutex.
  void undo() {
    drop_statistics(parts_);
    parts_.optimizer.set_last_rate(rate_before_);
    if (exchange::KeptParts* const kept = parts_.exchange.kept_parts()) kept->forget_nonfinite();
  }

 private:
  /// NaN and infinities go through a sum of squares.
  std::span<double> look() {
    const Array gradients = parts_.exchange.arenas().gradients;
    bad_ = 0;
    for (const Range& own : parts_.exchange.owned()) {
      const double squares = parts_.backend.sum_of_squares(gradients.slice(own.begin, own.end));
      if (!std::isfinite(squares)) ++bad_;
    }
    return {&bad_, 1};
  }

  Parts& parts_;
  const StepToDo& todo_;
  double rate_before_;
  double bad_ = 0;      ///< ranges with non-finite gradients, over all owners
  double nothing_ = 0;  ///< what is measured where the gate is closed
  std::vector<exchange::Measure> measures_;
};

/// A step until its weights are updated.
class Step {
 public:
  Step(Parts& parts, Observer& observer, const StepToDo& todo)
      : parts_(parts),
        observer_(observer),
        todo_(todo),
        lock_(parts.weights_mutex, std::defer_lock) {}

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
      if (last) prepare_update();
      parts_.program.backward({.loss_scale = loss_scale,
                               .accumulate = parts_.exchange.begin(k, last),
                               .ready =
                                   [&](std::size_t n, compute::Event* after) {
                                     observer_.part("exchange");
                                     parts_.exchange.ready(n, after);
                                     observer_.part("backward");
                                   },
                               .sums = sums_,
                               .update = in_backward_ ? &*in_backward_ : nullptr});
      add_pass(result_.budget.backward);
    }
    result_.tally.images = parts_.program.tally();  // that of a step that is given up is let go of
  }

  /// How the weights change, once all is known but the gradients of the last pass.
  void prepare_update() {
    gate_.emplace(parts_, todo_);
    sums_ = parts_.exchange.pass_sums(todo_.plan.last_images(todo_.in_epoch));
    if (!gate_->always_open() || !parts_.exchange.sums_in_backward()) return;
    in_backward_ = parts_.optimizer.whole_update();
    if (in_backward_) lock_.lock();
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
    const exchange::ExchangeTimes times = parts_.exchange.finish(gate_->measures(), [&](Range own) {
      if (!gate_->open()) return;
      // Not while waiting for other ranks, which may be gone.
      if (!lock_.owns_lock()) lock_.lock();
      observer_.at(Phase::update);
      if (!in_backward_) parts_.optimizer.update(own);
      parts_.optimizer.average(own);
    });
    if (!lock_.owns_lock()) lock_.lock();
    if (gate_->open()) {
      parts_.program.publish_statistics();
    } else {
      gate_->undo();
    }
    lock_.unlock();
    result_.skipped = !gate_->open();
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
  std::optional<UpdateGate> gate_;
  std::unique_lock<std::mutex> lock_;        ///< held from the first change of weights on
  const compute::PassSums* sums_ = nullptr;  ///< the last backward pass's
  /// Where nothing comes between the gradients and the update.
  std::optional<compute::StepUpdate> in_backward_;
};

void add_penalty(compute::Tally& tally, double penalty) { tally.loss += penalty * tally.images; }

/// Adds up over the ranks what has come on this one.
compute::Tally add_up(comm::Communicator& communicator, compute::Tally own, double penalty) {
  comm::sum_numbers(communicator, own.sums());
  add_penalty(own, penalty);
  return own;
}

}  // namespace

void Observer::begin_step(std::uint64_t step) {
  step_ = step;
  seen_ = 0;
  parts_.timeline.begin_step(step, "penalty");
}

void Observer::at(comm::Phase phase, double* loss_scale) {
  if (phase != comm::Phase::update) part(span_of(phase));
  parts_.communicator.pulse().at(phase, step_);
  if (parts_.timeline.wanted()) parts_.backend.name_work(comm::name_of(phase).data());
  const unsigned bit = 1u << static_cast<unsigned>(phase);
  if (!parts_.fault_point || (seen_ & bit) != 0) return;
  seen_ |= bit;
  const compute::Arenas arenas = parts_.exchange.arenas();
  parts_.fault_point({phase, parts_.communicator.rank(), step_, &parts_.memory(),
                      arenas.weights.slice(0, arenas.gradients.size), loss_scale});
}

StepResult run_step(Parts& parts, Observer& observer, const StepToDo& todo) {
  return Step(parts, observer, todo).run();
}

compute::Tally agree(const RankProgram& parts, Observer& observer, const StepTally& before,
                     StepResult& step) {
  observer.at(Phase::agree);
  system::Stopwatch watch;
  compute::Tally tally = before.images.wait();
  const double penalty = before.penalty.wait();
  step.budget.backward += watch.lap();
  const bool leads = parts.leads();
  compute::Tuner& tuner = parts.program.tuner();
  const std::string tuned_methods = tuner.take_tuned_methods();
  double stop = step.stop, checkpoint = leads && step.checkpoint;
  double trying = leads && step.trying, found = leads && !tuned_methods.empty();
  const auto [loss, correct, images, among_five, ranked] = tally.sums();
  comm::sum_numbers(parts.communicator, std::array{loss, correct, images, among_five, ranked, &stop,
                                                   &checkpoint, &trying, &found});
  add_penalty(tally, penalty);
  step.stop = stop > 0;
  step.checkpoint = checkpoint > 0;
  step.trying = trying > 0;
  if (found > 0) tuner.use_tuned_methods(parts.communicator.gather(tuned_methods).front());
  step.waited += watch.lap();
  observer.end_step();
  step.seconds = step.since_begin.seconds();
  step.budget.other = step.seconds - step.budget.known();
  return tally;
}

compute::Tally add_up(comm::Communicator& communicator, const StepTally& own) {
  const compute::Tally images = own.images.wait();
  return add_up(communicator, images, own.penalty.wait());
}

compute::Tally finish_step(comm::Communicator& communicator, StepResult& step) {
  system::Stopwatch watch;
  const compute::Tally own = step.tally.images.wait();
  const double penalty = step.tally.penalty.wait();
  const double computed = watch.lap();
  const compute::Tally tally = add_up(communicator, own, penalty);
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
