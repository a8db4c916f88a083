#include "training/session/inference.h"

#include <utility>

#include "system/print.h"
#include "weights/load.h"
#include "weights/torch_arrays.h"

namespace cputrain::training {

Inference make_inference(const Session& session, const model::Graph& graph,
                         std::vector<int> sizes) {
  Inference inference{.graph = graph, .memory = {}, .program = {}};
  const auto arenas = [&](const compute::ParameterLayout& layout) {
    inference.memory =
        compute::OwnedArray(session.backend->memory(), layout.arena_size, layout.dtype);
    return compute::Arenas{inference.weights(), {}};
  };
  inference.program =
      session.backend->compile(graph, {compute::Phase::evaluate, std::move(sizes)}, arenas);
  return inference;
}

void load_to_use(const std::string& file, const Inference& inference) {
  const compute::Program& program = *inference.program;
  const weights::WeightArrays arrays =
      weights::arrays_for(weights::safetensors::open(file), inference.graph);
  const weights::WeightMatch loaded = weights::load_weights(arrays, program, inference.weights());
  if (loaded.nonfinite.empty()) return;
  system::tell("warning: " + weights::nonfinite_text(file, loaded.nonfinite, loaded.rows.size()));
}

}  // namespace cputrain::training
