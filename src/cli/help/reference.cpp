#include "cli/help/reference.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/flags/command_flags.h"
#include "cli/flags/flags.h"
#include "cli/help/command_table.h"
#include "core/error.h"

namespace cputrain::cli {
namespace {

constexpr const char* kGeneral = "General";

/// Those that every command has, which the parser reads itself.
std::vector<FlagEntry> general_flags() {
  FlagEntry config, help, all;
  config.name = "config";
  config.meta = "FILE";
  config.help = "a JSON object of flags and values, such as a run's config.json";
  config.takes_value = true;
  help.name = "help";
  help.help = "shows the flags that most people need (also -h)";
  all.name = "help-all";
  all.help = "shows all flags of the command";
  std::vector<FlagEntry> flags{config, help, all};
  for (FlagEntry& flag : flags) flag.group = kGeneral;
  return flags;
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

std::vector<FlagEntry> flags_of(const CommandRow& row, const CommandLineChoices& choices) {
  Config config;
  config.command = row.name;
  config.topic = row.topic;
  config.backend = choices.backend_names().front();
  CLI::App app;
  Flags flags(app);
  add_command_flags(flags, config, choices);
  std::vector<FlagEntry> entries = flags.entries();
  for (FlagEntry& entry : entries) {
    entry.common = std::ranges::find(row.common, entry.name) != row.common.end();
  }
  sort_by_group(entries);
  for (FlagEntry& entry : general_flags()) entries.push_back(std::move(entry));
  return entries;
}

CommandEntry entry_of(const CommandRow& row, const CommandLineChoices& choices) {
  CommandEntry entry;
  entry.name = row.name;
  entry.topic = row.topic;
  entry.summary = row.summary;
  entry.about = row.about;
  entry.words = row.words;
  for (const CommandRow& other : command_table()) {
    if (row.topic.empty() && other.name == row.name && !other.topic.empty()) {
      entry.topics.push_back({other.topic, other.summary});
    }
  }
  entry.usage = "cputrain " + (row.name == "train" ? "[train]" : entry.full_name()) +
                (entry.topics.empty() ? "" : " TOPIC") + " [FLAGS]" +
                (row.words.empty() ? "" : " " + row.words);
  entry.examples = row.examples;
  entry.common = row.common;
  if (entry.topics.empty()) entry.flags = flags_of(row, choices);
  return entry;
}

}  // namespace

bool CommandEntry::all_common() const {
  return std::ranges::all_of(
      flags, [](const FlagEntry& flag) { return flag.common || flag.group == kGeneral; });
}

std::vector<CommandEntry> command_reference(const CommandLineChoices& choices) {
  std::vector<CommandEntry> reference;
  for (const CommandRow& row : command_table()) reference.push_back(entry_of(row, choices));
  return reference;
}

CommandEntry command_entry(const std::string& name, const std::string& topic,
                           const CommandLineChoices& choices) {
  for (const CommandRow& row : command_table()) {
    if (row.name == name && row.topic == topic) return entry_of(row, choices);
  }
  fail(ExitCode::usage, fmt::format("there is no command {} {}", name, topic));
}

}  // namespace cputrain::cli
