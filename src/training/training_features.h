#pragma once

#include <cstddef>
#include <vector>

#include "training/compiled_training.h"

/// What frozen layers make of an image is computed once and kept, where images come as they are or
/// in a few views.
namespace cputrain::training {

/// How many different views of its images a rank may meet: none where augmentation draws more than
/// flips, where nothing is frozen, or with --reproducible, whose bits must not depend on which
/// images a rank met together.
std::size_t views_of(const TrainingPlan&, std::size_t images);

/// The sizes, and smaller ones for the images of a batch that are new in a view of theirs.
std::vector<int> with_sizes_of_features(const TrainingPlan&, std::vector<int> sizes,
                                        std::size_t views);

/// Lets the program keep them, as many as a part of memory has room for, and says so.
void keep_features(const Session&, const TrainingPlan&, const MemoryBefore&, compute::Program&);

}  // namespace cputrain::training
