#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

namespace cputrain::cli {

/// Variables of the environment by name: those that begin with CPUTRAIN_, in any case of letters.
using Environment = std::map<std::string, std::string>;

/// Takes them from the system's list ("NAME=value", ended by nullptr).
Environment program_variables(const char* const* variables);

/// The variable that stands for a flag: "batch-size" -> "CPUTRAIN_BATCH_SIZE".
std::string variable_of(const std::string& flag);

/// The value of that variable, if it is set. Error(usage) where it is empty, as for the flag.
std::optional<std::string> value_of(const Environment&, const std::string& flag);

/// Error(usage) for a variable that would go unread although it was meant for this program: no
/// command has such a flag, or the name differs from that of a flag's in its letters' case.
/// `flags` are those of all commands. Variables of scripts and tests, and those that Kubernetes
/// sets for a service of the program's name, are none of ours.
void check_variables(const Environment&, const std::set<std::string>& flags);

}  // namespace cputrain::cli
