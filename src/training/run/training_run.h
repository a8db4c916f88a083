#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"
#include "training/run/resume.h"
#include "training/run/run_folder.h"
#include "training/training.h"

namespace cputrain::training {

/// One compiled training in its folder, from its plan to its end. `identity`: on rank 0, as
/// checkpoints and the summary have it.
ExitCode train_in_folder(Training&, RunFolder&, const Start&, nlohmann::ordered_json identity);

}  // namespace cputrain::training
