#pragma once

#include "job/training_memory.h"
#include "job/training_setup.h"

namespace cputrain {

/// A training's program and arenas, whose private pages are not touched yet, and what they will
/// take.
struct CompiledTraining {
  std::unique_ptr<GradientExchange> exchange;
  std::unique_ptr<Program> program;
  std::vector<int> sizes;  ///< that the program was compiled for
  int usual_images = 1;    ///< as in CompileOptions
  TrainingMemory memory;
};

/// What the data side takes: decoded pictures once a node, pictures in flight in every rank.
struct InputMemory {
  std::size_t cache = 0, batches = 0;
};

/// Compiles for these sizes and asks everything for its bytes. Error(usage) on all ranks alike
/// where a node has too little, naming what would fit. Collective.
CompiledTraining compile_training(const Session&, const Services&, const TrainingSpec&,
                                  const Graph&, std::vector<int> sizes, std::vector<NodeRoom> rooms,
                                  const InputMemory&);

}  // namespace cputrain
