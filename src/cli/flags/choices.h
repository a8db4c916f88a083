#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/flags/entries.h"
#include "training/session/services.h"

namespace cputrain::cli {

class Command;
using MakeCommand = std::function<std::unique_ptr<Command>()>;

/// What a program, its build and its machine allow, for checks and for --help.
struct CommandLineChoices {
  std::vector<training::BackendChoice> backends;  ///< those that the build lacks, too
  /// In the order of the overview. The first is the default; topics stand behind the word that they
  /// need.
  std::vector<MakeCommand> commands = {};
  /// As of a CommandEntry, for the overview.
  std::vector<std::pair<std::string, std::string>> examples = {};
  std::string_view build = {};       ///< "commit abc1234, Release", for --version
  std::size_t columns = 80;          ///< how wide help may be
  std::string program = "cputrain";  ///< as it was called, for help: or "./cputrain"

  /// Those that the build has, the default first.
  std::vector<std::string> backend_names() const {
    return names([](const auto& backend) { return backend.built; });
  }
  /// As --backend knows them: those of which the build says what it lacks, too.
  std::vector<std::string> known_backends() const {
    return names([](const auto& backend) { return backend.built || !backend.lack.empty(); });
  }
  /// Those that can compute so, built or not.
  std::vector<std::string> backends_with(Precision precision) const {
    return names([precision](const auto& backend) {
      return std::ranges::count(backend.precisions, precision) > 0;
    });
  }

 private:
  std::vector<std::string> names(const auto& wanted) const {
    std::vector<std::string> names;
    for (const training::BackendChoice& backend : backends) {
      if (wanted(backend)) names.push_back(backend.name);
    }
    return names;
  }
};

}  // namespace cputrain::cli
