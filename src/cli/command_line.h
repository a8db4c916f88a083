#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/flags/given_flags.h"

namespace cputrain::cli {

/// Reads the words after the program's name. A flag goes before CPUTRAIN_<FLAG> in the environment,
/// and that before the --config file (JSON, flag to value). Hyphens and underscores in flags are
/// the same. Variables that no command reads are refused. Throws Error(usage) naming the flag, the
/// value and what is allowed, and what the flags of other frameworks are called here. A text is
/// what was asked for instead of a run: --help, --help-all, --version, or no word at all.
std::variant<std::unique_ptr<Command>, std::string> parse_command_line(
    const std::vector<std::string>& words, const Environment&, const CommandLineChoices&);

}  // namespace cputrain::cli
