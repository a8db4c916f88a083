#pragma once

#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "training/session/session.h"

namespace cputrain::cli {

/// What measurements are asked for beside what a training is.
struct BenchOptions : Options {
  std::optional<int> repeat;
  int repeats() const { return repeat.value_or(5); }
};

/// Error(usage) for what one process does, where several were started.
inline void check_alone(const training::Session& session, const std::string& does,
                        const std::string& why) {
  const int ranks = session.communicator->size();
  if (ranks == 1) return;
  fail(ExitCode::usage, fmt::format("{} one process, not {} ({}", does, ranks, why));
}

}  // namespace cputrain::cli
