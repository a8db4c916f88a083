#include "cli/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/command.h"
#include "core/error.h"
#include "core/text.h"
#include "core/version.h"
#include "system/print.h"

namespace cputrain::cli {
namespace {

using system::wrapped;

/// Where the phrases of a list begin.
std::size_t phrase_column(const CommandLineChoices& choices) {
  return choices.columns < 80 ? 18 : choices.columns < 100 ? 26 : 30;
}

/// "  name   phrase", the phrase wrapped; on lines of its own where the name is too long.
std::string list_row(const std::string& name, const std::string& phrase, std::size_t column,
                     const CommandLineChoices& choices) {
  std::string row = "  " + name;
  if (phrase.empty()) return row + "\n";
  if (row.size() + 2 > column)
    row += "\n" + std::string(column, ' ');
  else
    row.append(column - row.size(), ' ');
  return row + wrapped(phrase, column, choices.columns) + "\n";
}

/// A phrase up to where it goes into detail: its first semicolon or full stop outside of brackets.
std::string first_clause(const std::string& phrase) {
  int depth = 0;
  for (std::size_t i = 0; i + 1 < phrase.size(); ++i) {
    depth += phrase[i] == '(' ? 1 : phrase[i] == ')' ? -1 : 0;
    const bool ends = phrase[i] == ';' || phrase[i] == '.';
    if (depth == 0 && ends && phrase[i + 1] == ' ') return phrase.substr(0, i);
  }
  return phrase;
}

std::string flag_row(const FlagEntry& flag, std::string phrase, const CommandLineChoices& choices) {
  for (const std::string& alias : flag.aliases) phrase += " (also --" + alias + ")";
  if (!flag.standard.empty()) phrase += " [" + flag.standard + "]";
  const std::string name = flag.spelling() + (flag.takes_value ? " " + flag.meta : "");
  return list_row(name, phrase, phrase_column(choices), choices);
}

/// The command line as this program was called; it goes on after a backslash where it is too long.
std::string called_so(const std::string& command, const CommandLineChoices& choices) {
  std::vector<std::string> words = split(command, ' ');
  std::ranges::replace(words, std::string("cputrain"), choices.program);
  return wrapped_command(words, 2, choices.columns);
}

std::string example_rows(const std::vector<std::pair<std::string, std::string>>& examples,
                         const CommandLineChoices& choices) {
  constexpr std::size_t kIndent = 6;
  std::string text = examples.empty() ? "" : "\nExamples:\n";
  for (const auto& [command, does] : examples) {
    text += called_so(command, choices) + "\n" + std::string(kIndent, ' ') +
            wrapped(does, kIndent, choices.columns) + "\n";
  }
  return text;
}

std::string usage_line(const CommandEntry& command, const CommandLineChoices& choices) {
  return "\nUsage: " + choices.program + command.usage.substr(std::string("cputrain").size()) +
         "\n";
}

std::string topic_rows(const CommandEntry& command, const CommandLineChoices& choices) {
  std::string text = "\nTopics:\n";
  for (const CommandEntry& topic : command.topics) {
    text += list_row(topic.topic, topic.summary, 14, choices);
  }
  return text + "\n" +
         wrapped(fmt::format("{} {} TOPIC --help shows what a topic takes.", choices.program,
                             command.name),
                 0, choices.columns) +
         "\n";
}

bool is_shown(const CommandEntry& command, const FlagEntry& flag) {
  return flag.common || (command.all_common() && flag.name == "config");
}

std::string common_rows(const CommandEntry& command, const CommandLineChoices& choices) {
  std::vector<const FlagEntry*> shown;
  for (const FlagEntry& flag : command.flags) {
    if (is_shown(command, flag)) shown.push_back(&flag);
  }
  std::ranges::stable_sort(shown, {}, [&](const FlagEntry* flag) {
    return std::ranges::find(command.common, flag->name) - command.common.begin();
  });
  std::string text = "\nFlags:\n";
  const bool whole = command.all_common();
  for (const FlagEntry* flag : shown) {
    text += flag_row(*flag, whole ? flag->help : first_clause(flag->help), choices);
  }
  if (whole) return text;
  const std::string more =
      fmt::format("{} more flags: {} {} --help-all", command.flags.size() - shown.size(),
                  choices.program, command.full_name());
  return text + "\n" + wrapped(more, 0, choices.columns) + "\n";
}

std::string rows_by_group(const CommandEntry& command, const CommandLineChoices& choices) {
  std::string text, group;
  for (const FlagEntry& flag : command.flags) {
    if (flag.group != group) text += "\n" + flag.group + ":\n";
    group = flag.group;
    text += flag_row(flag, flag.help, choices);
  }
  return text;
}

std::string other_places(const CommandLineChoices& choices) {
  return "\n" +
         wrapped(
             "Every flag can also be given in the environment, as CPUTRAIN_ and its name in "
             "capitals (CPUTRAIN_IMAGE_SIZE=64), or in a --config FILE. The command line goes "
             "before the environment, and that before the file. A warning names flags that were "
             "given and change nothing; variables, which are for many commands, stay unnamed.",
             0, choices.columns) +
         "\n";
}

/// Those that every command has, which the parser reads itself.
std::vector<FlagEntry> general_flags() {
  return {
      {"config", "FILE", "a JSON object of flags and values, such as a run's config.json", "",
       CommandEntry::kGeneral, true},
      {"help", "", "shows the flags that most people need (also -h)", "", CommandEntry::kGeneral},
      {"help-all", "", "shows all flags of the command", "", CommandEntry::kGeneral}};
}

/// Flags of one group stand together, in the order of the first of each; those of developers last.
void sort_by_group(std::vector<FlagEntry>& flags) {
  std::vector<std::string> groups;
  for (const FlagEntry& flag : flags) {
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  std::erase(groups, CommandEntry::kDevelopers);
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
      entry.topics.push_back(other);
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

std::string wrapped_command(const std::vector<std::string>& words, std::size_t indent,
                            std::size_t columns) {
  // A flag and its value stay together.
  std::vector<std::string> pieces;
  for (const std::string& word : words) {
    const bool value = !pieces.empty() && !word.starts_with("-") &&
                       pieces.back().starts_with("-") &&
                       pieces.back().find(' ') == std::string::npos;
    if (value) {
      pieces.back() += " " + word;
    } else {
      pieces.push_back(word);
    }
  }
  constexpr std::string_view kGoesOn = " \\";
  std::string result(indent, ' ');
  std::size_t column = indent;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t after = i + 1 == pieces.size() ? 0 : kGoesOn.size();
    if (i > 0 && column + 1 + pieces[i].size() + after > columns) {
      result += std::string(kGoesOn) + "\n" + std::string(indent + 2, ' ');
      column = indent + 2;
    } else if (i > 0) {
      result += " ";
      ++column;
    }
    result += pieces[i];
    column += pieces[i].size();
  }
  return result;
}

std::string overview_text(const CommandLineChoices& choices) {
  const auto paragraph = [&](const std::string& text) {
    return wrapped(text, 0, choices.columns) + "\n";
  };
  std::string text =
      paragraph("cputrain " + std::string(kVersion) + " trains image classifiers on CPUs.");
  text += fmt::format(
      "\nUsage: {0} [COMMAND] [FLAGS]\n       mpirun -np N {0} [COMMAND] [FLAGS]\n       {0} "
      "--version\n",
      choices.program);
  text += "\nCommands:\n";
  for (const CommandEntry& command : command_reference(choices)) {
    if (command.topic.empty()) text += list_row(command.name, command.summary, 12, choices);
  }
  text += example_rows(choices.examples, choices);
  text += "\n" + paragraph(fmt::format(
                     "{} COMMAND --help shows what a command takes, with examples and the flags "
                     "that most people need; COMMAND --help-all shows all of its flags.",
                     choices.program));
  return text + other_places(choices);
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
  fail(ExitCode::usage, "there is no command {} {}", name, topic);
}

std::string command_help(const Command& asked, bool all, const CommandLineChoices& choices) {
  const CommandEntry help = asked.help();
  const CommandEntry command = command_entry(help.name, help.topic, choices);
  std::string text = wrapped(command.about, 0, choices.columns) + "\n";
  text += usage_line(command, choices) + example_rows(command.examples, choices);
  if (!command.topics.empty()) return text + topic_rows(command, choices);
  if (!all) return text + common_rows(command, choices);
  return text + rows_by_group(command, choices) + other_places(choices);
}

}  // namespace cputrain::cli
