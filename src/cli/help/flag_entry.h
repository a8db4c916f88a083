#pragma once

#include <string>
#include <vector>

namespace cputrain::cli {

/// What help, manual page and completions say of a flag.
struct FlagEntry {
  std::string name{};      ///< without dashes: "batch", "no-winograd"
  std::string meta{};      ///< its value's: "N", "FILE", "none|six"; "" without a value
  std::string help{};      ///< a phrase, without the default
  std::string standard{};  ///< what holds without the flag, "" where nothing is to be said
  std::string group{};     ///< "Training"
  bool takes_value = false;
  std::vector<std::string> choices{};  ///< words that are allowed, or that a value may begin with
  std::vector<std::string> aliases{};  ///< other words for it: "batch-size"
  bool negatable = false;              ///< --no-NAME is a flag, too
  bool common = false;                 ///< one of the few that most people need

  /// "--batch", "--[no-]shuffle"
  std::string spelling() const { return (negatable ? "--[no-]" : "--") + name; }
};

}  // namespace cputrain::cli
