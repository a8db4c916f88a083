#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

namespace cputrain::cli {

/// A command or a topic without its flags; `common` are those that most people need, in the order
/// in which --help shows them.
struct CommandRow {
  std::string name, topic, summary, about, words;
  std::vector<ExampleEntry> examples;
  std::vector<std::string> common;
};

/// Every command, and after it its topics, in the order of the overview.
const std::vector<CommandRow>& command_table();

/// The names of all commands.
std::vector<std::string> command_names();
/// The topics of a command; none where it takes none.
std::vector<std::string> topics_of(const std::string& command);

}  // namespace cputrain::cli
