#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/command.h"
#include "weights/keras_file.h"

namespace cputrain::cli {

/// What --weights names becomes a file; `take_run` is given the folder of the run that wrote it,
/// empty where there is none. Rank 0 `leads`: it logs what was chosen, and alone refuses what
/// cannot be read, since trainings load weights there: Error(data), and that of `read_keras`.
void choose_weights(Command&, bool leads, const weights::ReadKeras& read_keras,
                    const std::function<void(const std::filesystem::path& run)>& take_run = {});

}  // namespace cputrain::cli
