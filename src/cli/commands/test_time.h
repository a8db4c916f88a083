#pragma once

#include "cli/flags/flags.h"
#include "core/names.h"

namespace cputrain::commands {

/// How many looks at an image make a prediction.
enum class TestTime { none, flip };
constexpr auto names(TestTime) {
  return std::to_array<Name<TestTime>>({{TestTime::none, "none"}, {TestTime::flip, "flip"}});
}

/// --tta
void add_test_time_flag(cli::Flags&, TestTime&);

}  // namespace cputrain::commands
