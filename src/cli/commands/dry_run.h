#pragma once

#include <string>

#include "training/training.h"

namespace cputrain::commands {

/// Prints what a compiled training would do, as text or with --json as an object: rank 0 only.
void print_dry_run(const training::Training&, const std::string& json_file);

}  // namespace cputrain::commands
