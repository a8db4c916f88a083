#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"
#include "job/training_job.h"
#include "run/resume.h"
#include "run/run_folder.h"

namespace cputrain::cli {

/// One compiled training in its folder, from its plan to its end. `identity`: on rank 0, as
/// checkpoints and the summary have it.
ExitCode train_in_folder(job::TrainingJob&, run::RunFolder&, const run::Start&,
                         nlohmann::ordered_json identity);

}  // namespace cputrain::cli
