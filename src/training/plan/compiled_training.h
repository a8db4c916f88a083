#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/image_feed.h"
#include "exchange/buckets.h"
#include "exchange/exchange.h"
#include "loop/parts.h"
#include "system/limits/process_limits.h"
#include "training/plan/training_memory.h"
#include "training/plan/training_plan.h"

namespace cputrain::training {

/// A training's program and arenas, whose private pages are not touched yet, and what they will
/// take.
struct CompiledTraining {
  /// Owns the arenas that the program works on.
  std::unique_ptr<exchange::GradientExchange> exchange;
  std::unique_ptr<compute::Program> program;
  std::vector<int> sizes;  ///< that the program was compiled for
  /// How gradients are summed, as --allreduce names it: what was measured is chosen here.
  std::string allreduce{};
  TrainingMemory memory;
  /// The part of what frozen layers make of images that has room; 0: none.
  double kept_features = 0;
  bool images_on_device = false;  ///< all of the training's
  bool images_left_out = false;   ///< of memory, where they would have been too much
};

/// Borrows both.
loop::RankProgram program_of(const Session&, const CompiledTraining&);

/// Buckets travel while backward runs where every rank has a core for that: on one that computes,
/// the thread would cost more than it hides.
bool overlaps(const Session&);

// What frozen layers make of an image is computed once and kept, where images come as they are or
// in a few views.

/// How many different views of its images a rank may meet: none where augmentation draws more than
/// flips, where nothing is frozen, or with --reproducible, whose bits must not depend on which
/// images a rank met together.
std::size_t views_of(const TrainingPlan&, std::size_t images);

/// Whether the program can keep them, and whether that saves work; what they are then.
std::optional<compute::FeatureFacts> features_of(const TrainingPlan&, std::size_t views,
                                                 const compute::Program&);

/// Memory before a program is compiled.
struct MemoryBefore {
  std::vector<NodeCapacity> capacities;  ///< what nodes have
  /// What this process held when that was measured.
  std::size_t held = system::own_memory();
  std::size_t cache = 0;   ///< what decoded images will take, once per node
  bool may_leave = false;  ///< they may lie elsewhere where that is too much
  /// Views of images that a rank may meet, where features of frozen layers may be kept
  /// (Program::features); 0 where not.
  std::size_t views = 0;
  /// What images in flight will take on this rank, and what it will be where all stay on the
  /// device.
  compute::FeedBytes batches{}, kept{};
};

/// Compiles for these numbers of images and asks everything for its bytes. Error(usage) on all
/// ranks alike where a node has too little, naming what would fit. Collective.
CompiledTraining compile_training(const Session&, const TrainingPlan&, std::vector<int> sizes,
                                  MemoryBefore);

}  // namespace cputrain::training
