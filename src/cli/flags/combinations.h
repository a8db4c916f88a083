#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace cputrain::cli {

/// Refuses what makes no sense together, whatever the machine: Error(usage). The one word of a
/// `data` command becomes its data set.
void check_combinations(Config&, const CommandLineChoices&);

/// The flags that name a file for a result, with the file ("-": standard output).
std::vector<std::pair<const char*, std::string>> result_files(const Config&);

}  // namespace cputrain::cli
