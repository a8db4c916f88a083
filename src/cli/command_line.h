#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/config.h"
#include "cli/flags/environment.h"

namespace cputrain {

/// Text that was asked for instead of a run: --help, --version.
struct HelpText {
  std::string text;
};

/// What a build and a machine allow, for checks and for --help, and what build it is.
struct CommandLineChoices {
  std::vector<std::string> backends;
  std::string_view build = {};  ///< "commit abc1234, Release", for --version
};

/// Reads the words after the program's name. A flag goes before CPUTRAIN_<FLAG> in the environment,
/// and that before the --config file (JSON, flag to value). Hyphens and underscores in flags are
/// the same. Variables that no command reads are refused. Throws Error(usage) naming the flag, the
/// value and what is allowed.
std::variant<Config, HelpText> parse_command_line(const std::vector<std::string>& words,
                                                  const Environment&, const CommandLineChoices&);

}  // namespace cputrain
