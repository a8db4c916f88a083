#include "backends/sim/sim_program.h"

#include <algorithm>
#include <utility>

#include "comm/communicator.h"
#include "core/casts.h"

namespace cputrain::sim {
namespace {

/// Arenas are empty: all numbers that are read are zero.
class NoNumbers final : public compute::ParameterFormat {
 public:
  explicit NoNumbers(std::size_t count) : count_(count) {}
  std::size_t stored() const override { return count_; }
  void to_canonical(std::span<const float>, std::span<float> canonical) const override {
    std::ranges::fill(canonical, 0.0f);
  }
  void from_canonical(std::span<const float>, std::span<float>) const override {}

 private:
  std::size_t count_;
};

compute::StoredParameters parameters_of(const model::Graph& graph) {
  compute::ParameterLayout layout = compute::lay_out(graph, DType::f32);
  compute::StoredParameters::Formats formats;
  for (const compute::Parameter& p : layout.parameters) {
    formats.push_back(std::make_unique<NoNumbers>(p.count));
  }
  return {std::move(layout), std::move(formats), compute::host_memory()};
}

}  // namespace

SimProgram::SimProgram(const model::Graph& graph, const compute::CompileOptions& options,
                       const compute::ArenaSource& arenas, const LayerCosts& costs,
                       SimulatedCore& core)
    : costs_(costs), core_(core), parameters_(parameters_of(graph)) {
  const int images = std::ranges::max(options.micro_batches);
  workspace_bytes_ = to_size(costs.workspace_bytes(images));
  arenas(layout());
  probabilities_.resize(to_size(images) * graph.back().dst.size());
  if (!options.node) return;
  std::size_t first = 0;
  for (const model::Graph::Node& node : graph.nodes()) {
    const std::size_t parameter = first;
    first += node.parameters.size();
    if (node.parameters.empty() || layout().parameters[parameter].row == 0) continue;
    dense_.push_back(std::make_unique<SimulatedDense>(
        *options.node, node.name, layout().parameters[parameter], to_size(images)));
  }
}

SimulatedDense* SimProgram::dense_at(std::size_t layer) const {
  const auto found = std::ranges::find(dense_, costs_.name(layer),
                                       [](const auto& dense) { return dense->name(); });
  return found == dense_.end() ? nullptr : found->get();
}

/// Spends what has come together since the last meeting with other ranks.
void SimProgram::finish(SimulatedWork& work) {
  const SimulatedWork done = std::exchange(work, {});
  if (done.seconds > 0 || done.bytes > 0) core_.work_on_micro_batch(done.seconds, done.bytes);
}

/// Layers are added up, but for those whose bytes the others would hide.
void SimProgram::add(SimulatedWork& work, SimulatedWork layer) {
  if (!costs_.may_wait_for_memory(layer)) {
    work += layer;
    return;
  }
  finish(work);
  finish(layer);
}

void SimProgram::forward(const compute::MicroBatch& batch, const compute::Pass&) {
  images_ = batch.size();
  core_.begin_micro_batch();
  SimulatedWork work;
  for (std::size_t layer = 0; layer < costs_.size(); ++layer) {
    if (SimulatedDense* dense = dense_at(layer)) {
      finish(work);
      dense->forward(to_size(images_), [&](double part, std::size_t images) {
        SimulatedWork shard = costs_.shard(layer, Way::forward, part, images);
        finish(shard);
      });
    } else {
      add(work, costs_.pass(layer, Way::forward, images_));
    }
  }
  finish(work);
  constexpr double kGuess = 0.5;
  tally_ += {.loss = images_ * 1.0, .correct = images_ * kGuess, .images = images_ * 1.0};
}

void SimProgram::backward(const compute::Backward& call) {
  SimulatedWork work;
  for (std::size_t layer = costs_.size(); layer-- > 0;) {
    if (SimulatedDense* dense = dense_at(layer)) {
      finish(work);
      dense->backward([&](double part, std::size_t images) {
        SimulatedWork shard = costs_.shard(layer, Way::backward, part, images);
        finish(shard);
      });
    } else {
      add(work, costs_.pass(layer, Way::backward, images_));
    }
  }
  finish(work);
  call.apply_update();
  call.ready(layout().gradient_size, nullptr);
}

std::vector<std::string> SimProgram::sharded() const {
  std::vector<std::string> names;
  for (const auto& dense : dense_) names.push_back(dense->name());
  return names;
}

double SimProgram::waited() const {
  double seconds = 0;
  for (const auto& dense : dense_) seconds += dense->waited();
  return seconds;
}

}  // namespace cputrain::sim
