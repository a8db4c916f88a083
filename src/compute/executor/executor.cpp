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
      times_layers_(options.times_layers),
      sizes_(distinct_descending(options.micro_batches)) {
  target_->enter([&] {
    compile(options);
    arenas_ = arenas(layout());
    // On a device with the first pass, not before: whoever compiles a program may find that it
    // needs more memory than there is, and say how much would do. Pages of the host cost nothing
    // before they are touched.
    if (target_->memory().is_host()) allocate();
  });
}

/// What a device is still at reads and writes memory that is freed now.
Executor::~Executor() {
  try {
    target_->enter([&] { target_->wait(); });
  } catch (const Error&) {  // whoever asks for a result is told
  }
}

void Executor::compile(const CompileOptions& options) {
  const Planning planning{.memory = memory_,
                          .options = options,
                          .sizes = sizes_,
                          .most_ops = 2 * static_cast<int>(graph_.nodes().size())};
  list_ = target_->make_ops(graph_, planning);
  if (!list_.loss) {
    fail(ExitCode::usage, "the model ends in " + graph_.back().name +
                              " (training and evaluation need a loss); end it in a cross-entropy");
  }
  assert(static_cast<int>(list_.ops.size()) <= planning.most_ops);
  lay_out_parameters();
  memory_.place();
  own_gradients_ = target_->own_gradients(layout());
  pending_.reserve(list_.ops.size());
  std::vector<MethodChoice*> choices;
  for (const auto& op : list_.ops) {
    if (MethodChoice* choice = op->choice()) choices.push_back(choice);
  }
  tuner_ = Tuner(std::move(choices));
}

/// Ranges of parameters run backwards: behind an operator's backward everything up to the end of
/// its first parameter is final.
void Executor::lay_out_parameters() {
  StoredParameters::Formats formats;
  std::vector<std::size_t> stored, first_of_op;
  for (const auto& op : list_.ops) {
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
  for (std::size_t i = 0; i < list_.ops.size(); ++i) {
    const std::size_t first = first_of_op[i];
    const bool learns = first < first_of_op[i + 1] && layout.parameters[first].learnt;
    ready_after_.push_back(learns ? layout.parameters[first].range.end : 0);
  }
  const auto last = std::ranges::max_element(ready_after_);
  if (*last > 0) *last = layout.gradient_size;  // padding behind it is nobody's
  parameters_.emplace(std::move(layout), std::move(formats), target_->memory());
}

void Executor::allocate() {
  if (arena_) return;
  arena_ = target_->allocate(memory_.peak());
  const Bindings bindings{memory_, arena_->bytes().data(), layout(), arenas_};
  for (const auto& op : list_.ops) op->bind(bindings);
}

std::size_t Executor::size_index(int images) const {
  const auto found = std::ranges::find(sizes_, images);
  assert(found != sizes_.end() && "a micro-batch that the program was not compiled for");
  return static_cast<std::size_t>(found - sizes_.begin());
}

/// Evaluation may run more images at once than training does, and tells nothing about it. Trials of
/// fewer images do not count once there are more.
bool Executor::is_most(int images) {
  if (images < most_trained_) return false;
  if (images > std::exchange(most_trained_, images)) tuner_.restart_trials();
  return true;
}

void Executor::forward(const MicroBatch& batch, const Pass& pass) {
  target_->enter([&] { run_forward(batch, pass); });
}

void Executor::run_forward(const MicroBatch& batch, const Pass& pass) {
  last_ = {.images = batch.size(), .pass = pass};
  target_->stage(batch, last_);
  if (batch.size() == 0) {
    list_.loss->forget();
    for (const auto& op : list_.ops) op->forward_of_nothing(last_);
    return;
  }
  allocate();
  last_.size = size_index(batch.size());
  last_.most_images = pass.phase == Phase::train && is_most(batch.size());
  last_.pixels = batch.images;
  for (const auto& op : list_.ops) op->forward(last_);
  last_.pixels = {};  // the caller's
  target_->end_call();
  if (times_layers_) wait();  // the next pass would take them anew
}

Tally Executor::tally() {
  Tally tally;
  target_->enter([&] { tally = list_.loss->take_tally(); });
  return tally;
}

std::span<const float> Executor::probabilities() {
  target_->enter([&] { target_->wait(); });
  return list_.loss->probabilities();
}

void Executor::backward(double loss_scale, Accumulate accumulate, const ReadySink& ready) {
  assert(phase_ == Phase::train && last_.pass.phase == Phase::train && arenas_.gradients.data);
  target_->enter([&] {
    if (last_.images == 0) {
      run_backward_of_nothing(accumulate);
    } else {
      Execution execution = last_;
      execution.loss_scale = loss_scale;
      execution.accumulate = accumulate;
      run_backward(execution, ready);
    }
    target_->end_call();
    wait();
    ready(layout().gradient_size);  // nothing of the pass is left
  });
}

void Executor::run_backward_of_nothing(Accumulate accumulate) {
  if (accumulate == Accumulate::overwrite) {
    for (const Range& own : own_gradients_) {
      target_->clear(arenas_.gradients.slice(own.begin, own.end));
    }
  }
  for (std::size_t i = list_.ops.size(); i-- > 1;) list_.ops[i]->backward_of_nothing(accumulate);
}

/// On a device, all of it is enqueued before anybody waits, so that the device never does.
void Executor::run_backward(const Execution& execution, const ReadySink& ready) {
  std::size_t told = 0;
  pending_.clear();
  for (std::size_t i = list_.ops.size(); i-- > 1;) {  // images have no gradient
    list_.ops[i]->backward(execution);
    if (ready_after_[i] <= told) continue;
    told = ready_after_[i];
    if (told == layout().gradient_size) continue;  // is said at the end
    if (Place* place = target_->place(i)) {
      pending_.emplace_back(told, place);
    } else {
      ready(told);
    }
  }
  for (const auto& [gradients, place] : pending_) {
    place->wait();
    ready(gradients);
  }
}

void Executor::wait() {
  target_->wait();
  for (const auto& op : list_.ops) op->collect_times();
}

void Executor::publish_statistics() {
  target_->enter([&] {
    for (const auto& op : list_.ops) op->publish_statistics();
  });
}

std::vector<LayerTime> Executor::layer_times() const {
  std::vector<LayerTime> times;
  for (const auto& op : list_.ops) op->append_times(times);
  return times;
}

std::size_t Executor::workspace_bytes() const {
  std::size_t bytes = memory_.peak();
  for (const auto& op : list_.ops) bytes += op->shared_bytes();
  return bytes;
}

double Executor::waited() const {
  double seconds = 0;
  for (const auto& op : list_.ops) seconds += op->waited();
  return seconds;
}

}  // namespace cputrain::compute
