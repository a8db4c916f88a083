#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/choices.h"
#include "cli/flags/entries.h"

/// What --help and --help-all print, made from the reference of the command line.
namespace cputrain::cli {

/// A text that begins at column `indent` and may be as wide as `columns`: further lines are
/// indented as much. A word that is longer than a line stays whole.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);

/// A command line, indented; where it is too long, a backslash ends the line and flags go on in the
/// next one.
std::string wrapped_command(const std::vector<std::string>& words, std::size_t indent,
                            std::size_t columns);

/// How wide help may be: COLUMNS of the environment, else the width of the terminal that standard
/// output is, else 80; from 60 to 120.
std::size_t help_columns();

/// How wide a text may be, and what the program was called by.
struct HelpForm {
  std::size_t columns = 80;
  std::string program = "cputrain";  ///< or "./cputrain"
};

/// The commands, examples, and where help goes on.
std::string overview_text(const std::vector<CommandEntry>&, const std::vector<ExampleEntry>&,
                          const HelpForm&);

/// What a command does, usage, examples and the flags that most people need, or `all`.
std::string command_help(const CommandEntry&, bool all, const HelpForm&);

/// Every command and topic, in the order of the overview.
std::vector<CommandEntry> command_reference(const CommandLineChoices&);

/// One of them; Error(usage) where there is none.
CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices&);

}  // namespace cputrain::cli
