#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

namespace cputrain::cli {

/// cputrain(1) in the macros of man(7). Flags of train stand there in full; other commands have
/// those that differ, and the names of the rest.
std::string man_page(const std::vector<CommandEntry>&);

}  // namespace cputrain::cli
