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

// Its start-up lines: its plan, with batches and learning rate; how it goes on.

/// What users should know before the first step, on standard error: where ranks run, the model,
/// batches, the recipe, and what is odd about any of them. Once loaded.
void say_plan(const Training&);

/// What a training that goes on does differently from what a person may expect, on rank 0: it does
/// not read the weights of --weights again, and another end moves the rate of a schedule that leads
/// to it. A line where no step follows, too. `progress` is that of the checkpoint.
void say_what_changes(const Training&, const std::filesystem::path& checkpoint,
                      const loop::Progress& progress);

}  // namespace cputrain::training
