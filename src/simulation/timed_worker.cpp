#include "simulation/timed_worker.h"

#include <algorithm>

#include "comm/node_arrays.h"
#include "core/clock.h"
#include "core/median.h"
#include "train/weights.h"

namespace cputrain {
namespace {

Array floats(const Pages& pages, std::size_t count) {
  return {pages.bytes().data(), count, DType::f32};
}

double time_often(const std::function<void()>& work) {
  constexpr int kTimes = 15;
  work();  // touches the memory
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  return median(std::move(seconds));
}

}  // namespace

void TimedWorker::compile(const std::function<Array(const ParameterLayout&)>& weights) {
  rounds_.resize(todo_.sizes.size());
  passes_.resize(todo_.sizes.size());
  for (const int images : todo_.sizes) {
    CompileOptions options{Phase::train, {images}};
    options.usual_images = images;
    programs_.push_back(backend_->compile(todo_.graph, options, [&](const ParameterLayout& layout) {
      if (!gradients_) {
        gradients_ = std::make_unique<Pages>(layout.gradient_size * sizeof(float));
      }
      weights_ = weights(layout);
      return Arenas{weights_, floats(*gradients_, layout.gradient_size)};
    }));
  }
}

Array TimedWorker::gradients() const {
  return floats(*gradients_, programs_[0]->layout().gradient_size);
}

UpdateSlice TimedWorker::slice(Range own, std::vector<std::unique_ptr<Pages>>& state) const {
  UpdateSlice slice{.weights = weights_.slice(own.begin, own.end),
                    .gradients = gradients().slice(own.begin, own.end),
                    .state = {}};
  for (int i = 0; i < state_arrays(todo_.rule); ++i) {
    state.push_back(std::make_unique<Pages>(own.size() * sizeof(float)));
    slice.state[static_cast<std::size_t>(i)] = floats(*state.back(), own.size());
  }
  return slice;
}

PassSeconds TimedWorker::pass(std::size_t size, Accumulate accumulate, double scale) {
  const std::size_t all = todo_.images.size();
  pixels_.clear();
  labels_.clear();
  samples_.clear();
  for (int i = 0; i < todo_.sizes[size]; ++i) {
    const std::size_t image = (next_++ + static_cast<std::size_t>(number_)) % all;
    pixels_.push_back(todo_.images.pixels[image]);
    labels_.push_back(todo_.images.labels[image]);
    samples_.push_back(todo_.images.samples[image]);
  }
  PassSeconds seconds;
  Stopwatch watch;
  programs_[size]->forward({pixels_, labels_, samples_}, {Phase::train, todo_.seed, 0});
  seconds.forward = watch.lap();
  programs_[size]->backward(scale / todo_.sizes[size], accumulate, [](std::size_t) {});
  seconds.backward = watch.lap();
  return seconds;
}

void TimedWorker::train() {
  constexpr std::uint64_t kSteps = 8;
  constexpr int kImages = 128;
  const std::size_t size = todo_.sizes.size() - 1;
  initialise_weights(todo_.graph, *programs_[size], todo_.seed, weights_);
  // Layer-wise rules would need norms; how few zeros there are depends little on the rule.
  const UpdateRule rule = is_layer_wise(todo_.rule) ? UpdateRule(Sgd{}) : todo_.rule;
  std::vector<std::unique_ptr<Pages>> state;
  UpdateSlice all = slice({0, gradients().size}, state);
  all.learning_rate = is_layer_wise(todo_.rule) ? default_learning_rate(rule) : todo_.learning_rate;
  const int passes = (kImages + todo_.sizes[size] - 1) / todo_.sizes[size];
  for (all.step = 0; all.step < kSteps; ++all.step) {
    for (int i = 0; i < passes; ++i) {
      pass(size, i == 0 ? Accumulate::overwrite : Accumulate::add, 1.0 / passes);
    }
    backend_->update(rule, all);
  }
}

void TimedWorker::take_weights(const TimedWorker& trained) {
  Program& own = *programs_.back();
  for (std::size_t p = 0; p < own.layout().parameters.size(); ++p) {
    own.from_canonical(p, trained.programs_.back()->to_canonical(p, trained.weights_), weights_);
  }
}

double TimedWorker::warm_up(std::size_t size) {
  constexpr int kMost = 64;
  Program& program = *programs_[size];
  for (int i = 0; i < kMost && program.trying(); ++i) {
    pass(size, Accumulate::overwrite);
    if (const std::string found = program.take_findings(); !found.empty()) {
      program.use_findings(found);
    }
  }
  pass(size, Accumulate::overwrite);
  const PassSeconds seconds = pass(size, Accumulate::add);
  return seconds.forward + seconds.backward;
}

/// Gradients are added to those before, as all micro-batches of a step but its first do.
void TimedWorker::time_passes(std::size_t size, int count) {
  const auto before = programs_[size]->layer_times();
  TimedRound round;
  for (int i = 0; i < count; ++i) {
    const PassSeconds seconds = pass(size, Accumulate::add);
    round.whole.forward += seconds.forward / count;
    round.whole.backward += seconds.backward / count;
    passes_[size].push_back(seconds.forward + seconds.backward);
  }
  for (const LayerTime& time : difference(programs_[size]->layer_times(), before)) {
    round.layers.push_back(
        {time.forward / count, (time.backward_data + time.backward_weights) / count});
  }
  rounds_[size].push_back(std::move(round));
}

double TimedWorker::time_update() {
  const Range own = slice_of({0, gradients().size}, number_, team_.ranks);
  std::vector<std::unique_ptr<Pages>> state;
  const UpdateSlice part = slice(own, state);  // at rate 0
  return time_often([&] { backend_->update(todo_.rule, part); }) /
         static_cast<double>(std::max<std::size_t>(own.size(), 1));
}

double TimedWorker::time_sum() {
  constexpr std::size_t kCount = std::size_t{6} << 20;
  const Pages a(kCount * sizeof(float)), b(kCount * sizeof(float));
  const std::vector<Array> src{floats(a, kCount), floats(b, kCount)};
  return 3.0 * sizeof(float) * kCount / time_often([&] { backend_->sum(src, src[0]); });
}

}  // namespace cputrain
