#include "backends/cpu/program.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#include "backends/cpu/compile.h"
#include "backends/cpu/convolution/method_trials.h"
#include "backends/cpu/kernels/parallel.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/text.h"
#include "model/rewrite.h"

namespace cputrain::cpu {
namespace {

std::vector<int> distinct_descending(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  assert(!sizes.empty() && sizes.back() >= 1);
  return sizes;
}

}  // namespace

CpuProgram::CpuProgram(const model::Graph& graph, const compute::CompileOptions& options,
                       const compute::ArenaSource& arenas, int threads,
                       const compute::KernelChoice& kernels)
    : graph_(model::pool_before_relu(graph)),
      threads_(threads),
      phase_(options.phase),
      dnnl_(make_dnnl_context()),
      sizes_(distinct_descending(options.micro_batches)) {
  const ThreadCount scope(threads_);
  const Planning planning{.dnnl = dnnl_,
                          .memory = memory_,
                          .sizes = sizes_,
                          .usual = options.usual_images.value_or(sizes_.front()),
                          .phase = phase_,
                          .threads = threads_,
                          .kernels = kernels,
                          .synchronise = options.synchronise,
                          .leaves_factors = options.leaves_factors,
                          .node = options.node,
                          .most_steps = 2 * static_cast<int>(graph_.nodes().size())};
  steps_ = make_steps(graph_, planning);
  loss_ = dynamic_cast<LossStep*>(steps_.back().get());
  if (!loss_) {
    fail(ExitCode::usage, "the model ends in " + graph.back().name +
                              " (training and evaluation need a loss); end it in a cross-entropy");
  }
  std::vector<std::size_t> stored, last_parameter;
  for (const auto& step : steps_) {
    for (auto& format : step->formats()) {
      stored.push_back(format->stored());
      formats_.push_back(std::move(format));
    }
    last_parameter.push_back(formats_.size());
  }
  layout_ = compute::lay_out(graph, DType::f32, stored);
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    layout_.parameters[i].panel = formats_[i]->panel();
    layout_.parameters[i].factors = formats_[i]->factors();
  }
  // Ranges run backwards: behind a step's backward everything up to its first parameter is final.
  for (std::size_t i = 0, first = 0; i < steps_.size(); first = last_parameter[i++]) {
    const bool learns = first < last_parameter[i] && layout_.parameters[first].learnt;
    ready_after_.push_back(learns ? layout_.parameters[first].range.end : 0);
  }
  memory_.place();
  arena_ = allocate_huge(memory_.peak());
  arenas_ = arenas(layout_);
  own_gradients_ = compute::used_gradients(layout_, 0, 1);
  if (options.node) {
    const comm::NodeMemory& node = options.node->node_memory();
    own_gradients_ = compute::used_gradients(layout_, node.local_rank(), node.local_size());
  }
  const Bindings bindings{dnnl_, memory_, arena_.get(), layout_, arenas_};
  for (const auto& step : steps_) step->bind(bindings);
  searches_ = trying();
}

std::size_t CpuProgram::size_index(int images) const {
  const auto found = std::find(sizes_.begin(), sizes_.end(), images);
  assert(found != sizes_.end() && "a micro-batch that the program was not compiled for");
  return static_cast<std::size_t>(found - sizes_.begin());
}

/// Evaluation may run more images at once than training does, and tells nothing about it. Trials of
/// fewer images do not count once there are more.
bool CpuProgram::is_most(int images) {
  if (images < most_trained_) return false;
  if (images > std::exchange(most_trained_, images)) {
    for (const auto& step : steps_) {
      if (step->trying()) step->try_again();
    }
  }
  return true;
}

compute::Tally CpuProgram::forward(const compute::MicroBatch& batch, const compute::Pass& pass) {
  compute::Tally tally;
  last_ = {.size = 0, .images = batch.size(), .batch = nullptr, .pass = pass};
  const ThreadCount scope(threads_);
  if (batch.size() == 0) {
    loss_->forget();
    for (const auto& step : steps_) step->forward_of_nothing(last_);
    return tally;
  }
  last_.size = size_index(batch.size());
  last_.most_images = pass.phase == compute::Phase::train && is_most(batch.size());
  Execution execution = last_;
  execution.batch = &batch;
  execution.tally = &tally;
  for (const auto& step : steps_) step->forward(execution);
  return tally;
}

void CpuProgram::backward_of_nothing(compute::Accumulate accumulate,
                                     const compute::ReadySink& ready) {
  if (accumulate == compute::Accumulate::overwrite) {
    for (const Range& own : own_gradients_) {
      std::ranges::fill(arenas_.gradients.slice(own.begin, own.end).as<float>(), 0.0f);
    }
  }
  for (std::size_t i = steps_.size(); i-- > 1;) steps_[i]->backward_of_nothing(accumulate);
  ready(layout_.gradient_size);
}

void CpuProgram::backward(double loss_scale, compute::Accumulate accumulate,
                          const compute::ReadySink& ready) {
  assert(phase_ == compute::Phase::train && last_.pass.phase == compute::Phase::train);
  const ThreadCount scope(threads_);
  if (last_.images == 0) return backward_of_nothing(accumulate, ready);
  Execution execution = last_;
  execution.loss_scale = loss_scale;
  execution.accumulate = accumulate;
  std::size_t told = 0;
  for (std::size_t i = steps_.size(); i-- > 1;) {  // pixels have no gradient
    steps_[i]->backward(execution);
    if (ready_after_[i] > told) ready(told = ready_after_[i]);
  }
  if (told < layout_.gradient_size || told == 0) ready(layout_.gradient_size);
}

void CpuProgram::publish_statistics() {
  for (const auto& step : steps_) step->publish_statistics();
}

std::vector<double> CpuProgram::to_canonical(std::size_t parameter, const Array& arena) const {
  const std::vector<float> keras = to_canonical_floats(parameter, arena);
  return {keras.begin(), keras.end()};
}

std::vector<float> CpuProgram::to_canonical_floats(std::size_t parameter,
                                                   const Array& arena) const {
  const compute::Parameter& p = layout_.parameters[parameter];
  std::vector<float> keras(p.count);
  formats_[parameter]->to_keras(arena.as<float>().data() + p.range.begin, keras.data());
  return keras;
}

void CpuProgram::from_canonical(std::size_t parameter, std::span<const double> values,
                                const Array& arena) const {
  const compute::Parameter& p = layout_.parameters[parameter];
  assert(values.size() == p.count);
  const std::vector<float> keras(values.begin(), values.end());
  formats_[parameter]->from_keras(keras.data(), arena.as<float>().data() + p.range.begin);
}

double CpuProgram::waited() const {
  double seconds = 0;
  for (const auto& step : steps_) seconds += step->waited();
  return seconds;
}

std::size_t CpuProgram::workspace_bytes() const {
  std::size_t bytes = memory_.peak();
  for (const auto& step : steps_) bytes += step->shared_bytes();
  return bytes;
}

bool CpuProgram::trying() const {
  return std::ranges::any_of(steps_, [](const auto& step) { return step->trying(); });
}

void CpuProgram::try_again() {
  if (trying()) return;  // an epoch was too short for them; they go on
  for (const auto& step : steps_) step->try_again();
  searches_ = trying();
}

std::string CpuProgram::take_findings() {
  if (!std::exchange(searches_, trying()) || searches_) return {};
  return methods();
}

/// A word for each step that has methods, in order.
std::string CpuProgram::methods() const {
  std::vector<std::string> words;
  for (const auto& step : steps_) {
    if (std::string word = step->methods(); !word.empty()) words.push_back(std::move(word));
  }
  return join(words, " ");
}

void CpuProgram::use_findings(std::string_view findings) {
  const std::vector<std::string> words = split(findings, ' ');
  std::vector<Step*> choosing;
  for (const auto& step : steps_) {
    if (!step->methods().empty()) choosing.push_back(step.get());
  }
  const bool fits =
      words.size() == choosing.size() &&
      std::ranges::all_of(words, [](const auto& word) { return methods_of(word).has_value(); });
  if (!fits) return;
  for (std::size_t i = 0; i < words.size(); ++i) choosing[i]->use_methods(words[i]);
  findings_ = methods();  // what the steps made of it
  searches_ = false;
}

std::vector<compute::LayerTime> CpuProgram::layer_times() const {
  std::vector<compute::LayerTime> times;
  for (const auto& step : steps_) step->append_times(times);
  return times;
}

}  // namespace cputrain::cpu
