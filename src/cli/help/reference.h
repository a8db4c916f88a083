#pragma once

#include <string>
#include <vector>

#include "cli/choices.h"
#include "cli/help/entries.h"

namespace cputrain::cli {

/// Every command and topic, in the order of the overview.
std::vector<CommandEntry> command_reference(const CommandLineChoices&);

/// One of them; Error(usage) where there is none.
CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices&);

}  // namespace cputrain::cli
