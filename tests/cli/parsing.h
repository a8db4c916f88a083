#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "composition/program.h"
#include "core/error.h"
#include "tests/support/refusal.h"

/// What the command line makes of words and variables, for tests.
namespace cputrain::cli {

using Variables = Environment;

/// All commands, in a build with these backends.
inline const CommandLineChoices kUsual = composition::command_line_choices(
    {{"cpu", {Precision::f32, Precision::bf16}}, {"reference", {Precision::f32, Precision::f64}}});

inline std::variant<std::unique_ptr<Command>, std::string> parse(
    const std::vector<std::string>& words, const Variables& variables = {},
    const CommandLineChoices& choices = kUsual) {
  return parse_command_line(words, variables, choices);
}

/// What the command was asked; `Kind` is that of the command's options.
template <class Kind = Options>
Kind options_of(const std::vector<std::string>& words, const Variables& variables = {},
                const CommandLineChoices& choices = kUsual) {
  const auto parsed = parse(words, variables, choices);
  return static_cast<Kind&>(std::get<std::unique_ptr<Command>>(parsed)->options());
}

/// The message of a refusal with exit code 2.
inline std::string refusal(const std::vector<std::string>& words, const Variables& variables = {},
                           const CommandLineChoices& choices = kUsual) {
  return testing::refused(ExitCode::usage, [&] { parse(words, variables, choices); });
}

}  // namespace cputrain::cli
