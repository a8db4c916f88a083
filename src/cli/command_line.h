#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/config.h"
#include "cli/flags/environment.h"
#include "training/session/services.h"

namespace cputrain::cli {

/// Text that was asked for instead of a run: --help, --help-all, --version.
struct HelpText {
  std::string text;
};

/// What a build and a machine allow, for checks and for --help, and what build it is.
struct CommandLineChoices {
  std::vector<training::BackendChoice> backends;  ///< those that the build lacks, too
  std::string_view build = {};                    ///< "commit abc1234, Release", for --version
  std::size_t columns = 80;                       ///< how wide help may be
  std::string program = "cputrain";               ///< as it was called, for help: or "./cputrain"

  /// Of those that the build has, the default first.
  std::vector<std::string> backend_names() const {
    std::vector<std::string> names;
    for (const training::BackendChoice& backend : backends) {
      if (backend.built) names.push_back(backend.name);
    }
    return names;
  }
  /// As --backend knows them: those of which the build says what it lacks, too.
  std::vector<std::string> known_backends() const {
    std::vector<std::string> names;
    for (const training::BackendChoice& backend : backends) {
      if (backend.built || !backend.lack.empty()) names.push_back(backend.name);
    }
    return names;
  }
  /// Those that can compute so, built or not.
  std::vector<std::string> backends_with(Precision precision) const {
    std::vector<std::string> names;
    for (const training::BackendChoice& backend : backends) {
      if (std::ranges::count(backend.precisions, precision) > 0) names.push_back(backend.name);
    }
    return names;
  }
};

/// Reads the words after the program's name. A flag goes before CPUTRAIN_<FLAG> in the environment,
/// and that before the --config file (JSON, flag to value). Hyphens and underscores in flags are
/// the same. Variables that no command reads are refused. Throws Error(usage) naming the flag, the
/// value and what is allowed, and what the flags of other frameworks are called here.
std::variant<Config, HelpText> parse_command_line(const std::vector<std::string>& words,
                                                  const Environment&, const CommandLineChoices&);

}  // namespace cputrain::cli
