#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/flags/flags.h"

/// Flags as they were given: on the command line, in the environment, in a file. Error(usage) names
/// the flag, the value and what is allowed.
namespace cputrain::cli {

/// Variables of the environment by name: those that begin with CPUTRAIN_, in any case of letters.
using Environment = std::map<std::string, std::string>;

/// Takes them from the system's list ("NAME=value", ended by nullptr).
Environment program_variables(const char* const* variables);

/// The value of that variable, if it is set. Error(usage) where it is empty, as for the flag.
std::optional<std::string> value_of(const Environment&, const std::string& flag);

/// Error(usage) for a variable that would go unread although it was meant for this program: no
/// command has such a flag, or the name differs from that of a flag's in its letters' case.
/// `flags` are those of all commands. Variables of scripts and tests, and those that Kubernetes
/// sets for a service of the program's name, are none of ours.
void check_variables(const Environment&, const std::set<std::string>& flags);

/// Name and value, "true" for a switch.
using Given = std::map<std::string, std::string>;

/// What may have been meant by a flag that the command does not have.
using Hint = std::function<std::string(const std::string& name, const Flags&)>;

/// What stands on the command line, and then in other places.
struct CommandLine {
  Given given;
  std::set<std::string> from_environment, from_config;  ///< flags that stand there alone
  std::vector<std::string> files;  ///< words that are no flags, and all words behind "--"
  std::string config;
  bool help = false, help_all = false;
};

/// "--batch_size=4", "--batch -4": what stands behind a flag with a value is never taken for a flag
/// unless it names one. Unknown flags end here, with a hint.
CommandLine read_line(const std::vector<std::string>& words, const Flags& flags, const Hint& hint);

/// Adds what the command line does not say: CPUTRAIN_BATCH=32 for --batch 32, then the --config
/// file's {"batch": 32, "model": "dogcat"}, then the file of that form that `earlier` names for
/// what is given so far ("" for none). Error(usage) also where two flags exclude each other.
void add_other_places(CommandLine&, const Flags&, const Environment&,
                      const std::function<std::string(const Given&)>& earlier, const Hint&);

/// The object of flags and values in the file of --config: a regular file of at most 1 MiB, since
/// under mpirun every rank reads it, of JSON in which no key stands twice. Error(usage).
nlohmann::json read_settings(const std::string& path);

}  // namespace cputrain::cli
