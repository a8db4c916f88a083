#pragma once

#include <filesystem>

#include "cli/command.h"
#include "training/session/session.h"

/// Weights and data that were named, or not.
namespace cputrain::commands {

/// Error(usage) for what does nothing without --weights.
void check_weights_named(const cli::Options&);

/// Where no data were named: a line that says what is taken instead, and what to type for other
/// data.
void ask_for_data(const training::Session&, const training::TrainingFlags&);

/// The options take the data that a run trained on; false where its files do not say. Error(data)
/// where they have moved since.
bool take_data_of_run(cli::Options&, const std::filesystem::path& run);

}  // namespace cputrain::commands
