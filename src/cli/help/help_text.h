#pragma once

#include <string>

#include "cli/help/reference.h"

/// What --help and --help-all print, made from the reference of the command line.
namespace cputrain::cli {

/// How wide a text may be, and what the program was called by.
struct HelpForm {
  std::size_t columns = 80;
  std::string program = "cputrain";  ///< or "./cputrain"
};

/// The commands, three examples, and where help goes on.
std::string overview_text(const std::vector<CommandEntry>&, const HelpForm&);

/// Of a command: what it does, usage, examples and the flags that most people need, or `all`.
std::string command_help(const CommandEntry&, bool all, const HelpForm&);

}  // namespace cputrain::cli
