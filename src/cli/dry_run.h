#pragma once

#include "job/training_program.h"

namespace cputrain {

/// Prints what a training would do, as text or with --json as an object, and ends there: rank 0
/// only. `plan` is of the whole job, `compiled` has what it takes of memory.
void print_dry_run(const Session&, const TrainingSpec&, const Graph&, const BatchPlan& plan,
                   const CompiledTraining& compiled, const std::string& json_file);

/// Steps of the whole training.
std::uint64_t all_steps(const BatchPlan&, int epochs, std::optional<std::uint64_t> steps);

/// Images of every rank in the first step, whatever the sharding.
std::vector<std::size_t> images_by_rank(const BatchPlan&);

}  // namespace cputrain
