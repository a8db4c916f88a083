#pragma once

#include "job/training_program.h"

namespace cputrain {

/// How both parts of the data are cut into steps, for this rank.
struct TrainingPlans {
  /// Error(usage) where no step would be left.
  TrainingPlans(const Session&, const TrainingSpec&, int micro_batch, std::size_t train_images,
                std::size_t validation_images);

  std::vector<int> sizes() const { return sizes_of(train, validation); }

  BatchPlan train, validation;
};

/// The program before any picture is decoded: what cannot fit is refused at once. Collective.
CompiledTraining compile_before_decoding(const Session&, const Services&, const TrainingSpec&,
                                         const Graph&, const DataSource&, const TrainingPlans&);

/// The same once damaged pictures are left out and shares have changed.
CompiledTraining compile_after_decoding(const Session&, const Services&, const TrainingSpec&,
                                        const Graph&, const DataSource&, const TrainingPlans&);

}  // namespace cputrain
