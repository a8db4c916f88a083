#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

/// The command line as data: help, manual page and completions are made from it.
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

/// A command, or a topic of one ("bench step"). Where a command has topics, it has an entry without
/// a topic, too, which has no flags of its own.
struct CommandEntry {
  static constexpr const char* kGeneral = "General";  ///< the group that every command has
  /// The group of what is for measurements and for work on the program: the last one before it.
  static constexpr const char* kDevelopers = "For developers";

  std::string name{}, topic{};  ///< "bench", "step"; "" where there is no topic
  std::string summary{};        ///< short, for lists: "loss and accuracy of saved weights"
  std::string about{};          ///< sentences
  std::string words{};          ///< what it takes beside flags: "IMAGE...", "[DATA]", or ""
  /// Command lines that work ("mpirun -np 4 cputrain"), each with a sentence on what it does.
  std::vector<std::pair<std::string, std::string>> examples{};
  std::vector<std::string> common{};  ///< flags that most people need, in the order of --help
  std::string others{};  ///< first words for it as others say them, with commas between them
  std::string advice{};  ///< what to do here then; else the same by the command's name

  std::string usage{};                 ///< "cputrain predict [FLAGS] IMAGE..."
  std::vector<CommandEntry> topics{};  ///< for a command that needs one
  std::vector<FlagEntry> flags{};      ///< by group, in the order of --help-all; --help is the last

  /// There are no more than the common flags and those that every command has.
  bool all_common() const {
    return std::ranges::all_of(
        flags, [](const FlagEntry& flag) { return flag.common || flag.group == kGeneral; });
  }
  /// "bench step"
  std::string full_name() const { return topic.empty() ? name : name + " " + topic; }
};

}  // namespace cputrain::cli
