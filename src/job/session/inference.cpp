#include "job/session/inference.h"

#include <utility>

#include "system/tell.h"
#include "train/weights.h"

namespace cputrain {

Inference make_inference(const Session& session, const Graph& graph, std::vector<int> sizes) {
  Inference inference;
  const auto arenas = [&](const ParameterLayout& layout) {
    inference.memory = OwnedArray(session.backend->memory(), layout.arena_size, layout.dtype);
    return Arenas{inference.weights(), {}};
  };
  inference.program = session.backend->compile(graph, {Phase::evaluate, std::move(sizes)}, arenas);
  return inference;
}

void load_to_use(const std::string& file, const Inference& inference) {
  const Program& program = *inference.program;
  const LoadedWeights loaded = load_weights(safetensors::File(file), program, inference.weights());
  if (loaded.no_numbers.empty()) return;
  tell("warning: " + no_numbers_text(file, loaded.no_numbers, program.layout().parameters.size()));
}

}  // namespace cputrain
