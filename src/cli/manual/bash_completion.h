#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

namespace cputrain::cli {

/// A script for bash, with or without the package bash-completion.
std::string bash_completion(const std::vector<CommandEntry>&);

}  // namespace cputrain::cli
