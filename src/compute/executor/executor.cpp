#include "compute/executor/executor.h"

#include <algorithm>
#include <cassert>
#include <functional>

#include "core/error.h"
#include "model/rewrite.h"

namespace cputrain::compute {
namespace {

std::vector<int> distinct_descending(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  assert(!sizes.empty() && sizes.back() >= 1);
  return sizes;
}

}  // namespace

Executor::Executor(std::unique_ptr<Target> target, const model::Graph& graph,
                   const CompileOptions& options, const ArenaSource& arenas)
    : target_(std::move(target)),
      graph_(model::pool_before_relu(graph)),
      phase_(options.phase),
      sizes_(distinct_descending(options.micro_batches)) {
  target_->enter([&] {
    compile(options);
    arenas_ = arenas(layout());
    target_->use(arenas_);
    // On a device with the first pass, not before: if the program needs more memory than there is,
    // the caller can then report how much would do. Pages of the host cost nothing before they are
    // touched.
    if (target_->memory().is_host()) allocate();
  });
}

/// What a device is still at reads and writes memory that is freed now.
Executor::~Executor() {
  try {
    target_->enter([&] { target_->wait(); });
  } catch (const Error&) {  // a call that asks for a result throws it
  }
}

void Executor::compile(const CompileOptions& options) {
  const Planning planning{.memory = memory_,
                          .options = options,
                          .sizes = sizes_,
                          .most_ops = 2 * static_cast<int>(graph_.nodes().size())};
  ops_ = target_->make_ops(graph_, planning);
  assert(!ops_.empty());
  loss_ = dynamic_cast<LossOp*>(ops_.back().get());
  if (!loss_) {
    fail(ExitCode::usage, "the model ends in " + graph_.back().name +
                              " (training and evaluation need a loss); end it in a cross-entropy");
  }
  assert(static_cast<int>(ops_.size()) <= planning.most_ops);
  lay_out_parameters();
  memory_.place();
  own_gradients_ = target_->own_gradients(layout());
  std::vector<MethodChoice*> choices;
  for (const auto& op : ops_) {
    if (MethodChoice* choice = op->choice()) choices.push_back(choice);
  }
  tuner_ = Tuner(std::move(choices));
}

/// Ranges of parameters run backwards: behind an operator's backward everything up to the end of
/// its first parameter is final. Padding behind the last of them belongs to none.
void Executor::lay_out_parameters() {
  StoredParameters::Formats formats;
  std::vector<std::size_t> stored, first_of_op;
  for (const auto& op : ops_) {
    first_of_op.push_back(formats.size());
    for (auto& format : op->formats()) {
      stored.push_back(format->stored());
      formats.push_back(std::move(format));
    }
  }
  first_of_op.push_back(formats.size());
  ParameterLayout layout = lay_out(graph_, DType::f32, stored);
  for (std::size_t p = 0; p < formats.size(); ++p) {
    layout.parameters[p].panel = formats[p]->panel();
    layout.parameters[p].columns = formats[p]->columns();
    layout.parameters[p].factors = formats[p]->factors();
  }
  final_behind_.resize(ops_.size());
  std::size_t told = 0, last = 0;
  for (std::size_t i = ops_.size(); i-- > 0;) {
    const std::size_t first = first_of_op[i];
    if (first == first_of_op[i + 1] || !layout.parameters[first].learnt) continue;
    if (layout.parameters[first].range.end <= told) continue;
    told = final_behind_[i] = layout.parameters[first].range.end;
    last = i;
  }
  final_behind_[last] = 0;  // it is reported at the end
  parameters_.emplace(std::move(layout), std::move(formats), target_->memory());
}

void Executor::allocate() {
  if (arena_) return;
  arena_ = target_->allocate(memory_.peak());
  const Bindings bindings{memory_, arena_->bytes().data(), layout(), arenas_};
  for (const auto& op : ops_) op->bind(bindings);
}

std::size_t Executor::size_index(int images) const {
  const auto found = std::ranges::find(sizes_, images);
  assert(found != sizes_.end() && "a micro-batch that the program was not compiled for");
  return static_cast<std::size_t>(found - sizes_.begin());
}

/// Counts training passes only: evaluation may run more images at once. Trials of fewer images do
/// not count once there are more.
bool Executor::is_most(int images) {
  if (images < most_trained_) return false;
  if (images > std::exchange(most_trained_, images)) tuner_.restart_trials();
  return true;
}

void Executor::forward(const MicroBatch& batch, const Pass& pass) {
  target_->enter([&] { run_forward(batch, pass); });
}

void Executor::run_forward(const MicroBatch& batch, const Pass& pass) {
  run_waiting_forward();
  last_ = {.images = batch.size(), .pass = pass};
  target_->stage(batch, last_);
  allocate();
  if (batch.size() == 0) {
    for (const auto& op : ops_) op->forward_of_nothing(last_);
    return;
  }
  last_.size = size_index(batch.size());
  last_.most_images = pass.phase == Phase::train && is_most(batch.size());
  last_.pixels = batch.images;
  forward_waits_ = true;
  if (pass.phase != Phase::train || !target_->joins_directions()) run_waiting_forward();
  last_.pixels = {};  // the caller's
}

void Executor::call_forward(const Execution& execution) {
  std::size_t first = 0;
  if (prefix_) {
    prefix_->forward(execution, [&](const Execution& part) {
      for (std::size_t i = 0; i < prefix_->ops(); ++i) ops_[i]->forward(part);
    });
    first = prefix_->ops();
  }
  for (std::size_t i = first; i < ops_.size(); ++i) ops_[i]->forward(execution);
}

/// Runs the last forward pass unless it has run: a training pass's may wait for its backward.
void Executor::run_waiting_forward() {
  if (!std::exchange(forward_waits_, false)) return;
  last_.forward = true;
  target_->run(last_, [&] { call_forward(last_); });
  target_->end_call();
  if (times_layers_) wait();  // the next pass would take them anew
}

Pending<Tally> Executor::tally() {
  Pending<Tally> tally;
  target_->enter([&] {
    run_waiting_forward();
    tally = loss_->take_tally();
  });
  return tally;
}

std::span<const float> Executor::probabilities() {
  target_->enter([&] {
    run_waiting_forward();
    target_->wait();
  });
  return loss_->probabilities(last_);
}

void Executor::backward(const Backward& call) {
  assert(phase_ == Phase::train && last_.pass.phase == Phase::train && arenas_.gradients.data);
  target_->enter([&] {
    if (last_.images == 0) {
      run_backward_of_nothing(call.accumulate);
      if (call.sums) (*call.sums)(layout().gradient_size);
      call.apply_update();
    } else {
      Execution execution = last_;
      execution.forward = std::exchange(forward_waits_, false);
      execution.backward = true;
      execution.loss_scale = call.loss_scale;
      execution.accumulate = call.accumulate;
      execution.sums = call.sums;
      execution.update = call.update;
      run_backward(execution, call.ready);
    }
    target_->mark(0);  // event 0 has no other use: what the first operator learns is final here
    target_->end_call();
    if (times_layers_) wait();
    for (std::size_t i = ops_.size(); last_.images > 0 && i-- > 0;) {
      if (final_behind_[i] == 0) continue;
      if (Event* event = target_->event(i)) call.ready(final_behind_[i], event);
    }
    call.ready(layout().gradient_size, target_->event(0));
  });
}

void Executor::run_backward_of_nothing(Accumulate accumulate) {
  if (accumulate == Accumulate::overwrite) {
    for (const Range& own : own_gradients_) {
      target_->clear(arenas_.gradients.slice(own.begin, own.end));
    }
  }
  for (std::size_t i = ops_.size(); i-- > 0;) ops_[i]->backward_of_nothing(accumulate);
}

/// On a device, all of it is enqueued before any gradients are reported, so that it goes on while
/// they travel.
void Executor::run_backward(const Execution& execution, const ReadySink& ready) {
  target_->run(execution, [&] {
    if (execution.forward) call_forward(execution);
    for (std::size_t i = ops_.size(); i-- > 0;) {
      ops_[i]->backward(execution);
      const std::size_t gradients = final_behind_[i];
      if (gradients == 0) continue;
      if (execution.sums) (*execution.sums)(gradients);
      if (!target_->mark(i)) ready(gradients, nullptr);
    }
    if (execution.sums) (*execution.sums)(layout().gradient_size);
  });
}

void Executor::wait() {
  target_->wait();
  for (const auto& op : ops_) op->collect_times();
}

void Executor::publish_statistics() {
  target_->enter([&] {
    run_waiting_forward();
    for (const auto& op : ops_) op->publish_statistics();
    target_->end_call();
  });
}

std::vector<LayerTime> Executor::layer_times() const {
  std::vector<LayerTime> times;
  for (const auto& op : ops_) op->append_times(times);
  return times;
}

void Executor::time_layers(bool on) {
  target_->enter([&] {
    run_waiting_forward();
    times_layers_ = on;
    target_->time_layers(on);
    for (const auto& op : ops_) op->time(on);
  });
}

std::optional<FeatureFacts> Executor::features() const {
  const auto end = target_->frozen_end();
  if (!end || !target_->memory().is_host()) return {};
  return FeatureFacts{end->node, FeatureStore::bytes_of_row(FrozenPrefix::row_bytes(*end))};
}

void Executor::keep_features(std::size_t most_bytes) {
  const FrozenEnd end = *target_->frozen_end();
  target_->enter([&] { allocate(); });
  std::byte* value = arena_->bytes().data() + memory_.offset(end.features.value);
  prefix_.emplace(end, value, graph_.image().size(), sizes_, most_bytes);
}

std::size_t Executor::workspace_bytes() const {
  std::size_t bytes = memory_.peak() + target_->own_bytes(layout());
  if (prefix_) bytes += prefix_->most_bytes();
  for (const auto& op : ops_) bytes += op->shared_bytes();
  return bytes;
}

double Executor::waited() const {
  double seconds = 0;
  for (const auto& op : ops_) seconds += op->waited();
  return seconds;
}

}  // namespace cputrain::compute
