#include "cli/help/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/command.h"
#include "core/error.h"

namespace cputrain::cli {
namespace {

constexpr const char* kGeneral = "General";

/// Those that every command has, which the parser reads itself.
std::vector<FlagEntry> general_flags() {
  return {{"config", "FILE", "a JSON object of flags and values, such as a run's config.json", "",
           kGeneral, true},
          {"help", "", "shows the flags that most people need (also -h)", "", kGeneral},
          {"help-all", "", "shows all flags of the command", "", kGeneral}};
}

/// Flags of one group stand together, in the order of the first of each.
void sort_by_group(std::vector<FlagEntry>& flags) {
  std::vector<std::string> groups;
  for (const FlagEntry& flag : flags) {
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  std::ranges::stable_sort(flags, {}, [&](const FlagEntry& flag) {
    return std::ranges::find(groups, flag.group) - groups.begin();
  });
}

/// Usage, topics and flags, which follow from the commands.
CommandEntry entry_of(Command& command, const std::vector<std::unique_ptr<Command>>& all,
                      const CommandLineChoices& choices) {
  CommandEntry entry = command.help();
  for (const auto& each : all) {
    const CommandEntry other = each->help();
    if (entry.topic.empty() && other.name == entry.name && !other.topic.empty())
      entry.topics.push_back({other.topic, other.summary});
  }
  const bool is_default = &command == all.front().get();
  entry.usage = "cputrain " + (is_default ? "[" + entry.name + "]" : entry.full_name()) +
                (entry.topics.empty() ? "" : " TOPIC") + " [FLAGS]" +
                (entry.words.empty() ? "" : " " + entry.words);
  if (!entry.topics.empty()) return entry;
  Flags flags;
  command.add_flags(flags, choices);
  entry.flags = flags.entries();
  for (FlagEntry& flag : entry.flags)
    flag.common = std::ranges::find(entry.common, flag.name) != entry.common.end();
  sort_by_group(entry.flags);
  std::ranges::move(general_flags(), std::back_inserter(entry.flags));
  return entry;
}

}  // namespace

bool CommandEntry::all_common() const {
  return std::ranges::all_of(
      flags, [](const FlagEntry& flag) { return flag.common || flag.group == kGeneral; });
}

std::vector<CommandEntry> command_reference(const CommandLineChoices& choices) {
  const auto commands = make_commands(choices);
  std::vector<CommandEntry> reference;
  for (const auto& command : commands) reference.push_back(entry_of(*command, commands, choices));
  return reference;
}

CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices& choices) {
  const auto commands = make_commands(choices);
  for (const auto& command : commands) {
    const CommandEntry entry = command->help();
    if (entry.name == name && entry.topic == topic) return entry_of(*command, commands, choices);
  }
  fail(ExitCode::usage, fmt::format("there is no command {} {}", name, topic));
}

}  // namespace cputrain::cli
