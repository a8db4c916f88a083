#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "cli/config.h"
#include "cli/environment.h"

namespace cputrain {

/// Text that was asked for instead of a run: --help, --version.
struct HelpText {
  std::string text;
};

/// A backend that --backend may name.
struct BackendChoice {
  std::string name;
  std::vector<std::string> precisions;  ///< that --precision may ask it for
  bool built = true;                    ///< this build has it
};

/// What a build and a machine allow, for checks and for --help.
struct CommandLineChoices {
  std::vector<BackendChoice> backends;  ///< those that the build lacks, too

  /// Of those that the build has, the default first.
  std::vector<std::string> backend_names() const {
    std::vector<std::string> names;
    for (const BackendChoice& backend : backends) {
      if (backend.built) names.push_back(backend.name);
    }
    return names;
  }
  /// Those that can compute so, built or not.
  std::vector<std::string> backends_with(const std::string& precision) const {
    std::vector<std::string> names;
    for (const BackendChoice& backend : backends) {
      if (std::ranges::count(backend.precisions, precision) > 0) names.push_back(backend.name);
    }
    return names;
  }
};

/// Reads the words after the program's name. A flag goes before CPUTRAIN_<FLAG> in the environment,
/// and that before the --config file (JSON, flag to value). Hyphens and underscores in flags are
/// the same. Variables that no command reads are refused. Throws Error(usage) naming the flag, the
/// value and what is allowed.
std::variant<Config, HelpText> parse_command_line(const std::vector<std::string>& words,
                                                  const Environment&, const CommandLineChoices&);

}  // namespace cputrain
