#pragma once

#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "training/session/session.h"

namespace cputrain::commands {

/// What measurements are asked for beside what a training is.
struct BenchOptions : cli::Options {
  std::optional<int> repeat;
  int repeats() const { return repeat.value_or(5); }
};

}  // namespace cputrain::commands
