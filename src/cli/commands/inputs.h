#pragma once

#include <filesystem>

#include "cli/command.h"
#include "cli/flags/flags.h"
#include "core/names.h"
#include "training/session/session.h"

/// What commands with saved weights have in common, and data that were named, or not.
namespace cputrain::commands {

/// How many looks at an image make a prediction.
enum class TestTime { none, flip };
constexpr auto names(TestTime) {
  return std::to_array<Name<TestTime>>({{TestTime::none, "none"}, {TestTime::flip, "flip"}});
}

/// --tta
void add_test_time_flag(cli::Flags&, TestTime&);

/// Error(usage) for what does nothing without --weights.
void check_weights_named(const cli::Options&);

/// Where no data were named: a line that says what is taken instead, and what to type for other
/// data.
void ask_for_data(const training::Session&, const training::TrainingFlags&);

/// The options take the data that a run trained on; false where its files do not say. Error(data)
/// where they have moved since.
bool take_data_of_run(cli::Options&, const std::filesystem::path& run);

}  // namespace cputrain::commands
