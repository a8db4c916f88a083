#pragma once

#include <nlohmann/json_fwd.hpp>

#include "training/request/choose_training.h"

namespace cputrain::training {

/// Every figure that the run works with, as flags: `--config config.json` repeats it. Each has the
/// type of its row, whatever way it was given.
nlohmann::ordered_json effective_flags(const TrainingSpec&);

/// The same flags with paths from the root, so that they mean the same in any working folder.
nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags);

/// What config.json has: both, with the weight file that was taken where a folder was named.
nlohmann::ordered_json recorded_flags(const TrainingSpec&);

}  // namespace cputrain::training
