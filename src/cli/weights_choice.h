#pragma once

#include "cli/config.h"

namespace cputrain::cli {

/// What --weights names becomes a file, and `eval` takes the data of the run that wrote it where
/// none is named. The rank that `leads` says what was chosen, and alone refuses what cannot be
/// read, since trainings load weights there: Error(data).
void choose_weights(Config&, bool leads);

}  // namespace cputrain::cli
