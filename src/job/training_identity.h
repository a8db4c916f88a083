#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "job/training_job.h"

namespace cputrain::job {

/// What a training is, by names that a person knows: all that a resume may not change, since the
/// rest of the training would be another one's. Threads, ranks, the backend and the end of the
/// training are not in it. What only decoding tells, which images are damaged, is null before
/// load(). The same on all ranks; once compiled.
nlohmann::ordered_json training_identity(const TrainingJob&);

/// "batch: 48 in the checkpoint, 64 here", one for each name in which two differ and neither is
/// null.
std::vector<std::string> identity_differences(const nlohmann::ordered_json& checkpoint,
                                              const nlohmann::ordered_json& here);

}  // namespace cputrain::job
