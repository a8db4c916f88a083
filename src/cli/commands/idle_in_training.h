#pragma once

#include <string>

#include "training/training.h"

namespace cputrain::commands {

/// Why a flag that was given has no effect with these ranks, data and network, as in
/// cli/idle_flags.h. The training is compiled already.
std::string why_idle_in(const training::Training&, const std::string& flag);

}  // namespace cputrain::commands
