#pragma once

#include <string>
#include <vector>

#include "cli/flags/choices.h"
#include "cli/flags/entries.h"

/// What --help and --help-all print, made from the reference of the command line.
namespace cputrain::cli {

/// A command line, indented; where it is too long, a backslash ends the line and flags go on in the
/// next one.
std::string wrapped_command(const std::vector<std::string>& words, std::size_t indent,
                            std::size_t columns);

/// The commands, examples, and where help goes on.
std::string overview_text(const CommandLineChoices&);

/// What a command does, usage, examples and the flags that most people need, or `all`.
std::string command_help(const Command&, bool all, const CommandLineChoices&);

/// Every command and topic, in the order of the overview.
std::vector<CommandEntry> command_reference(const CommandLineChoices&);

/// One of them; Error(usage) where there is none.
CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices&);

}  // namespace cputrain::cli
