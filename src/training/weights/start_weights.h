#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "training/plan/compiled_training.h"
#include "weights/description.h"

namespace cputrain::training {

/// Names by label: those of the data, then "class 2", ... up to --classes.
std::vector<std::string> class_names(const data::DataSource&, int classes);

/// Proves that parameters lie alike in the arenas of all ranks, which share and add them up.
/// Error(disagree). Collective.
void check_layouts(const Session&, const CompiledTraining&);

/// Rank 0 makes the weights or loads them from --weights, the others get them from it; a hash
/// proves that they did. What makes the outputs is put by the names of the data's classes, and a
/// line is printed where that was needed or not possible. Of a file that does not name its network
/// the outputs are left where they are of other classes. Warns where earlier trainings learnt from
/// images that are for validation now. Error(data) for weights that cannot be used. Collective.
///
/// On rank 0, which saves, it returns what the weights of this training will hold about its data,
/// and that of earlier ones; and which arrays of --weights were taken, and how
/// (weights/weight_match.h), empty where there is nothing to tell.
std::pair<weights::TrainingData, std::string> start_weights(const Session&, const TrainingPlan&,
                                                            const data::DataSource&,
                                                            const CompiledTraining&);

/// What the weights of a resumed training will hold about its data: what the checkpoint has, which
/// rank 0 names.
weights::TrainingData resumed_data(const Session&, const TrainingSpec&, const data::DataSource&,
                                   const std::filesystem::path& checkpoint);

/// Before anything long begins: Error(data) where --weights do not fit the network. Collective.
void check_first_weights(const Session&, const TrainingPlan&, const data::DataSource&);

}  // namespace cputrain::training
