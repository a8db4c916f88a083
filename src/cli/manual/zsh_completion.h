#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

namespace cputrain::cli {

/// A function for zsh's compinit: _cputrain.
std::string zsh_completion(const std::vector<CommandEntry>&);

}  // namespace cputrain::cli
