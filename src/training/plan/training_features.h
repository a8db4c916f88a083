#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compute/image_feed.h"
#include "training/plan/compiled_training.h"

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

/// Whether the program can keep them, and whether that saves work; what they are then.
std::optional<compute::FeatureFacts> features_of(const TrainingPlan&, std::size_t views,
                                                 const compute::Program&);

/// Lets the program keep them, as many as there is room for beside the memory of the training
/// without them, and says so. Returns which part of all that is: 0 where none are kept.
double keep_features(const Session&, const TrainingPlan&, std::size_t views, const TrainingMemory&,
                     compute::Program&);

}  // namespace cputrain::training
