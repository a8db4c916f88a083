#include "bench/kernel_trial.h"

#include "train/weights.h"

namespace cputrain {

KernelTrial::KernelTrial(const Session& session, const Graph& graph, const std::string& weights,
                         std::uint64_t seed, int micro_batch, int passes)
    : seed_(seed), rounds_{micro_batch, passes} {
  Memory& memory = session.backend->memory();
  program_ = session.backend->compile(
      graph, {Phase::train, {micro_batch}}, [&](const ParameterLayout& layout) {
        weights_ = OwnedArray(memory, layout.arena_size, layout.dtype);
        gradients_ = OwnedArray(memory, layout.gradient_size, layout.dtype);
        return Arenas{weights_.array(), gradients_.array()};
      });
  if (weights.empty()) {
    initialise_weights(graph, *program_, seed, weights_.array());
  } else {
    load_weights(safetensors::File(weights), *program_, weights_.array());
  }
}

void KernelTrial::round(BatchSource& batches) {
  batches.seek(0, 0);
  const double loss_scale = 1.0 / rounds_.images();
  for (int k = 0; k < rounds_.passes; ++k) {
    program_->forward(batches.next(), {Phase::train, seed_, 0});
    program_->backward(loss_scale, k == 0 ? Accumulate::overwrite : Accumulate::add,
                       [](std::size_t) {});
  }
}

void KernelTrial::warm_up(BatchSource& batches) {
  constexpr int kMostRounds = 16;
  for (int i = 0; i < kMostRounds && program_->trying(); ++i) round(batches);
  round(batches);
}

void KernelTrial::measure(BatchSource& batches) {
  const std::vector<LayerTime> before = program_->layer_times();
  round(batches);
  rounds_.layers.push_back(difference(program_->layer_times(), before));
}

}  // namespace cputrain
