#include "scaling/bench/kernel_trial.h"

#include "loop/weights/weights.h"

namespace cputrain::bench {

KernelTrial::KernelTrial(const training::Session& session, const model::Graph& graph,
                         const std::string& weights, std::uint64_t seed, int micro_batch,
                         int passes)
    : seed_(seed), rounds_{micro_batch, passes} {
  compute::Memory& memory = session.backend->memory();
  compute::CompileOptions options{compute::Phase::train, {micro_batch}};
  program_ = session.backend->compile(graph, options, [&](const compute::ParameterLayout& layout) {
    weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
    gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
    return compute::Arenas{weights_.array(), gradients_.array()};
  });
  program_->time_layers(true);
  if (weights.empty()) {
    loop::initialise_weights(graph, *program_, seed, weights_.array());
  } else {
    loop::load_weights(model::safetensors::File(weights), *program_, weights_.array());
  }
}

void KernelTrial::round(data::BatchSource& batches) {
  batches.seek(0, 0);
  const double loss_scale = 1.0 / rounds_.images();
  for (int k = 0; k < rounds_.passes; ++k) {
    program_->forward(batches.next(), {compute::Phase::train, seed_, 0});
    program_->backward(
        {loss_scale, k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add});
  }
  data::require_whole(batches);
}

void KernelTrial::warm_up(data::BatchSource& batches) {
  constexpr int kMostRounds = 16;
  for (int i = 0; i < kMostRounds && program_->tuner().trying(); ++i) round(batches);
  round(batches);
}

void KernelTrial::measure(data::BatchSource& batches) {
  const std::vector<compute::LayerTime> before = program_->layer_times();
  round(batches);
  rounds_.layers.push_back(compute::difference(program_->layer_times(), before));
}

}  // namespace cputrain::bench
