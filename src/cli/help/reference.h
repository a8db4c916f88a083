#pragma once

#include <string>
#include <vector>

#include "cli/choices.h"
#include "cli/help/flag_entry.h"

/// The whole command line as data. Help, manual page and completions are all made from it.
namespace cputrain::cli {

/// A command line that works, and what it does.
struct ExampleEntry {
  std::string command;  ///< "cputrain --data photos --epochs 20", "mpirun -np 4 cputrain"
  std::string does;     ///< a sentence
};

/// The word after a command that has several.
struct TopicEntry {
  std::string name, summary;
};

/// A command, or a topic of one ("bench step"). Where a command has topics, it has an entry without
/// a topic, too, which has no flags of its own.
struct CommandEntry {
  std::string name{}, topic{};  ///< "bench", "step"; "" where there is no topic
  std::string summary{};        ///< short, for lists: "loss and accuracy of saved weights"
  std::string about{};          ///< sentences
  std::string words{};          ///< what it takes beside flags: "IMAGE...", "[DATA]", or ""
  std::vector<ExampleEntry> examples{};
  std::vector<std::string> common{};  ///< flags that most people need, in the order of --help

  std::string usage{};               ///< "cputrain predict [FLAGS] IMAGE..."
  std::vector<TopicEntry> topics{};  ///< for a command that needs one
  std::vector<FlagEntry> flags{};    ///< by group, in the order of --help-all; --help is the last

  /// There are no more than the common flags and those that every command has.
  bool all_common() const;
  /// "bench step"
  std::string full_name() const { return topic.empty() ? name : name + " " + topic; }
};

/// Every command and topic, in the order of the overview.
std::vector<CommandEntry> command_reference(const CommandLineChoices&);

/// One of them; Error(usage) where there is none.
CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices&);

}  // namespace cputrain::cli
