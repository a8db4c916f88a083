#include "scaling/simulation/timed_worker.h"

#include <algorithm>
#include <array>

#include "comm/node.h"
#include "core/error.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "system/clock.h"
#include "weights/load.h"

namespace cputrain::simulation {
namespace {

Array floats(const system::Pages& pages, std::size_t count) {
  return {pages.bytes().data(), count, DType::f32};
}

double time_often(const std::function<void()>& work) {
  constexpr int kTimes = 15;
  work();  // touches the memory
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const system::Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  return median(std::move(seconds));
}

}  // namespace

std::string text_of(const Team& team) {
  return counted(team.ranks, "rank") + " x " + counted(team.threads, "thread");
}

std::vector<Team> teams_of(int cores, int hardware_threads) {
  std::vector<Team> teams;
  for (int ranks = 1; ranks < cores; ranks *= 4) teams.push_back({ranks, 1});
  teams.push_back({cores, 1});
  if (hardware_threads > cores) teams.push_back({hardware_threads, 1});
  if (cores > 1) teams.push_back({1, cores});
  return teams;
}

void TimedWorker::start() {
  backend_ = todo_.make_backend(team_.threads);
  if (backend_->memory().is_host()) return;
  fail(ExitCode::usage,
       "simulate with the backend {}, whose arrays do not lie in the host's memory (costs are "
       "those of ranks that share their node's memory); use another --backend",
       backend_->name());
}

void TimedWorker::compile(const std::function<Array(const compute::ParameterLayout&)>& weights) {
  rounds_.resize(todo_.sizes.size());
  passes_.resize(todo_.sizes.size());
  for (const int images : todo_.sizes) {
    compute::CompileOptions options{compute::Phase::train, {images}};
    options.usual_images = images;
    programs_.push_back(
        backend_->compile(todo_.graph, options, [&](const compute::ParameterLayout& layout) {
          if (!gradients_) {
            gradients_ = std::make_unique<system::Pages>(layout.gradient_size * sizeof(float));
          }
          weights_ = weights(layout);
          return compute::Arenas{weights_, floats(*gradients_, layout.gradient_size)};
        }));
  }
}

Array TimedWorker::gradients() const {
  return floats(*gradients_, programs_[0]->layout().gradient_size);
}

optim::UpdateSlice TimedWorker::slice(Range own,
                                      std::vector<std::unique_ptr<system::Pages>>& state) const {
  optim::UpdateSlice slice{.weights = weights_.slice(own.begin, own.end),
                           .gradients = gradients().slice(own.begin, own.end)};
  for (int i = 0; i < optim::state_arrays(todo_.rule); ++i) {
    state.push_back(std::make_unique<system::Pages>(own.size() * sizeof(float)));
    slice.state[static_cast<std::size_t>(i)] = floats(*state.back(), own.size());
  }
  return slice;
}

LayerSeconds TimedWorker::pass(std::size_t size, std::size_t first, std::uint64_t step,
                               compute::Accumulate accumulate, double scale) {
  pixels_.clear();
  labels_.clear();
  samples_.clear();
  const auto count = static_cast<std::size_t>(todo_.sizes[size]);
  const std::size_t bytes = todo_.images.stored ? todo_.images.image.size() : 0;
  space_.resize(count * bytes);
  for (std::size_t i = first; i < first + count; ++i) {
    const std::size_t image = order_[i % order_.size()];
    pixels_.push_back(
        todo_.images.pixels_of(image, std::span(space_).subspan((i - first) * bytes, bytes)));
    labels_.push_back(todo_.images.labels[image]);
    samples_.push_back(todo_.images.samples[image]);
  }
  LayerSeconds seconds;
  system::Stopwatch watch;
  programs_[size]->forward({pixels_, labels_, samples_}, {compute::Phase::train, todo_.seed, step});
  seconds.forward = watch.lap();
  programs_[size]->backward({scale / static_cast<double>(count), accumulate});
  seconds.backward = watch.lap();
  return seconds;
}

LayerSeconds TimedWorker::next_pass(std::size_t size, compute::Accumulate accumulate) {
  const std::size_t first = next_;
  next_ += static_cast<std::size_t>(todo_.sizes[size]);
  return pass(size, first, 0, accumulate, 1);
}

void TimedWorker::train_step(compute::Update& update, optim::UpdateStep& step, std::size_t first) {
  constexpr std::size_t kImages = 128;
  const std::size_t size = todo_.sizes.size() - 1;
  const auto at_once = static_cast<std::size_t>(todo_.sizes[size]);
  const std::size_t passes = (kImages + at_once - 1) / at_once;
  const std::size_t before = static_cast<std::size_t>(step.step) * passes;
  for (std::size_t i = 0; i < passes; ++i) {
    pass(size, first + (before + i) * at_once, step.step,
         i == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add,
         1.0 / static_cast<double>(passes));
  }
  update.apply(step);
  ++step.step;
}

void TimedWorker::train(int trainings) {
  // Sweeps leave out the first steps, too.
  constexpr std::array<std::uint64_t, 3> kSteps{4, 7, 10};
  // Layer-wise rules would need norms; how few zeros there are depends little on the rule.
  const bool layer_wise = optim::is_layer_wise(todo_.rule);
  const optim::UpdateRule rule = layer_wise ? optim::UpdateRule(optim::Sgd{}) : todo_.rule;
  for (std::size_t i = 0; i < static_cast<std::size_t>(trainings); ++i) {
    weights::initialise_weights(todo_.graph, *programs_.back(), todo_.seed + i, weights_);
    std::vector<std::unique_ptr<system::Pages>> state;
    const auto update = backend_->make_update({rule, {slice({0, gradients().size}, state)}});
    optim::UpdateStep step{rule,
                           layer_wise ? optim::default_learning_rate(rule) : todo_.learning_rate};
    const std::size_t first = i * order_.size() / static_cast<std::size_t>(trainings);
    while (step.step < kSteps[i % kSteps.size()]) train_step(*update, step, first);
    kept_.push_back(std::make_unique<system::Pages>(weights_.bytes().size()));
    std::ranges::copy(weights_.bytes(), kept_.back()->bytes().begin());
  }
  // It has tried algorithms with weights that had hardly learnt.
  programs_.back()->tuner().try_again();
}

void TimedWorker::use_weights(const TimedWorker& trained, int kept) {
  const compute::Program& from = *trained.programs_.back();
  const Array src{trained.kept_[static_cast<std::size_t>(kept)]->bytes().data(),
                  trained.weights_.size, trained.weights_.dtype};
  compute::Program& own = *programs_.back();
  for (std::size_t p = 0; p < own.layout().parameters.size(); ++p) {
    own.parameters().from_canonical(p, from.parameters().to_canonical(p, src), weights_);
  }
}

double TimedWorker::warm_up(std::size_t size) {
  constexpr int kMost = 64;
  compute::Program& program = *programs_[size];
  for (int i = 0; i < kMost && program.tuner().trying(); ++i) {
    next_pass(size, compute::Accumulate::overwrite);
    if (const std::string found = program.tuner().take_tuned_methods(); !found.empty()) {
      program.tuner().use_tuned_methods(found);
    }
  }
  next_pass(size, compute::Accumulate::overwrite);
  const LayerSeconds seconds = next_pass(size, compute::Accumulate::add);
  return seconds.forward + seconds.backward;
}

/// Gradients are added to those before, as all micro-batches of a step but its first do.
void TimedWorker::time_passes(std::size_t size, int count) {
  const auto before = programs_[size]->layer_times();
  TimedRound round;
  LayerSeconds whole;
  for (int i = 0; i < count; ++i) {
    const LayerSeconds seconds = next_pass(size, compute::Accumulate::add);
    whole.forward += seconds.forward / count;
    whole.backward += seconds.backward / count;
    passes_[size].push_back(seconds.forward + seconds.backward);
  }
  for (const compute::LayerTime& time :
       compute::difference(programs_[size]->layer_times(), before)) {
    round.push_back(
        {time.name, time.forward / count, (time.backward_data + time.backward_weights) / count});
  }
  round.push_back(whole);
  rounds_[size].push_back(std::move(round));
}

double TimedWorker::time_update() {
  const Range own = comm::slice_of({0, gradients().size}, number_, team_.ranks);
  std::vector<std::unique_ptr<system::Pages>> state;
  const auto update = backend_->make_update({todo_.rule, {slice(own, state)}});
  return time_often([&] { update->apply({todo_.rule}); }) /  // at rate 0
         static_cast<double>(std::max<std::size_t>(own.size(), 1));
}

double TimedWorker::time_sum() {
  constexpr std::size_t kCount = std::size_t{6} << 20;
  const system::Pages a(kCount * sizeof(float)), b(kCount * sizeof(float));
  const std::vector<Array> src{floats(a, kCount), floats(b, kCount)};
  return 3.0 * sizeof(float) * kCount / time_often([&] { backend_->sum(src, src[0]); });
}

}  // namespace cputrain::simulation
