#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "training/session/services.h"

namespace cputrain::cli {

/// What a build and a machine allow, for checks and for --help, and what build it is.
struct CommandLineChoices {
  std::vector<training::BackendChoice> backends;  ///< those that the build lacks, too
  std::string_view build = {};                    ///< "commit abc1234, Release", for --version
  std::size_t columns = 80;                       ///< how wide help may be
  std::string program = "cputrain";               ///< as it was called, for help: or "./cputrain"

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
