#pragma once

#include <filesystem>
#include <functional>

#include "cli/command.h"
#include "training/session/session.h"

namespace cputrain::cli {

/// Error(usage) for what does nothing without --weights.
void check_weights_named(const Options&);

/// What --weights names becomes a file; `take_run` is given the folder of the run that wrote it,
/// empty where there is none. Rank 0 `leads`: it logs what was chosen, and alone refuses what
/// cannot be read, since trainings load weights there: Error(data).
void choose_weights(Command&, bool leads,
                    const std::function<void(const std::filesystem::path& run)>& take_run = {});

/// Where no data were named: a line that says what is taken instead, and what to type for other
/// data.
void ask_for_data(const training::Session&, const training::TrainingFlags&);

/// The options take the data that a run trained on; false where its files do not say. Error(data)
/// where they have moved since.
bool take_data_of_run(Options&, const std::filesystem::path& run);

}  // namespace cputrain::cli
