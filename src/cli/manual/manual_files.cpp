#include "cli/manual/manual_files.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/text.h"

namespace cputrain::cli {
namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string paths_of_meta(const std::string& meta) {
  for (const char* word : {"FILE", "DATA", "IMAGE"}) {
    if (contains(meta, word)) return FlagValues::kFiles;
  }
  for (const char* word : {"DIR", "FOLDER"}) {
    if (contains(meta, word)) return FlagValues::kFolders;
  }
  return "";
}

/// "none|six" -> none, six: words in small letters are typed as they are.
std::vector<std::string> literal_words(const std::string& meta) {
  std::vector<std::string> words;
  for (const std::string& word : split(meta, '|')) {
    if (!word.empty() && std::islower(static_cast<unsigned char>(word.front()))) {
      words.push_back(word);
    }
  }
  return words;
}

/// What a command takes beside flags: files, folders or nothing.
std::string paths_of(const CommandEntry& command) { return paths_of_meta(command.words); }

/// As one word of a shell's script: 'none'.
std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

/// Rows: command, flag, whether its value is one or a list ("" for a switch), what paths it may be,
/// what words. A command's own rows have its flags, its topics, and what it takes beside them.
std::string rows_of(const CommandEntry& command) {
  const std::string name = command.full_name();
  std::string text;
  const auto add = [&](const std::string& row, const std::string& list, const std::string& paths,
                       const std::vector<std::string>& words) {
    text += join(std::vector{name, row, list, paths, join(words, " ")}, "|") + "\n";
  };
  std::vector<std::string> flags, topics;
  for (const CommandEntry& topic : command.topics) topics.push_back(topic.topic);
  for (const FlagEntry& flag : command.flags) {
    for (const std::string& word : spellings_of(flag)) flags.push_back(word);
    if (!flag.takes_value) continue;
    const FlagValues values = values_of(flag);
    std::vector<std::string> names = flag.aliases;
    names.push_back(flag.name);
    for (const std::string& each : names)
      add("--" + each, values.list ? "list" : "one", values.paths, values.words);
  }
  add("flags", "", "", flags);
  add("topics", "", "", topics);
  add("words", "", paths_of(command), {});
  return text;
}

/// In a specification of _arguments a colon ends a field, a bracket the description.
std::string field(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  for (const char* special : {":", "[", "]"})
    text = replaced(std::move(text), special, std::string("\\") + special);
  return text;
}

std::string paths_action(const std::string& paths) {
  if (paths == FlagValues::kFiles) return "_files";
  return paths == FlagValues::kFolders ? "_files -/" : "";
}

/// What zsh calls for a value.
std::string action(const FlagValues& values) {
  const std::string paths = paths_action(values.paths);
  if (values.words.empty()) return paths.empty() ? " " : paths;
  std::vector<std::string> words;
  for (const std::string& word : values.words) words.push_back(field(word));
  const std::string list = join(words, " ");
  if (values.list) return "_sequence compadd - " + list;
  return paths.empty() ? "(" + list + ")" : "{compadd -- " + list + "; " + paths + "}";
}

std::string specifications(const FlagEntry& flag) {
  std::string text;
  for (const std::string& word : spellings_of(flag)) {
    const bool opposite = word != "--" + flag.name;
    std::string spec = word + (flag.takes_value ? "=" : "") + "[" +
                       field(opposite ? "the opposite of --" + flag.name : flag.help) + "]";
    if (flag.takes_value) spec += ":" + field(flag.meta) + ":" + action(values_of(flag));
    text += " \\\n    " + in_quotes(spec);
  }
  return text;
}

/// _arguments of one command.
std::string arguments(const CommandEntry& command) {
  std::string text = "_arguments -s";
  for (const FlagEntry& flag : command.flags) text += specifications(flag);
  const std::string paths = paths_of(command);
  if (!paths.empty())
    text += " \\\n    " + in_quotes("*:" + field(command.words) + ":" + paths_action(paths));
  return text;
}

/// "_cputrain_data_check"
std::string function_name(const CommandEntry& command) {
  std::string name = "_cputrain_" + command.full_name();
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// A list for _describe: 'train:trains a classifier'.
std::string described(const std::string& name, const std::string& help) {
  return " \\\n    " + in_quotes(field(name) + ":" + replaced(help, ":", "\\:"));
}

/// A command with topics: the second word leads on.
std::string with_topics(const CommandEntry& command, const std::vector<CommandEntry>& commands) {
  std::string list, cases;
  for (const CommandEntry& other : commands) {
    if (other.name != command.name || other.topic.empty()) continue;
    list += described(other.topic, other.summary);
    cases +=
        "    " + other.topic + ") shift words; (( CURRENT-- )); " + function_name(other) + " ;;\n";
  }
  return function_name(command) +
         "() {\n  if (( CURRENT == 2 )); then\n    local -a topics\n    topics=(" + list +
         ")\n    _describe topic topics\n    return\n  fi\n  case $words[2] in\n" + cases +
         "  esac\n}\n\n";
}

}  // namespace

FlagValues values_of(const FlagEntry& flag) {
  if (!flag.takes_value) return {};
  FlagValues values;
  values.words = flag.choices.empty() ? literal_words(flag.meta) : flag.choices;
  values.paths = paths_of_meta(flag.meta);
  if (flag.name == "model") values.paths = FlagValues::kFiles;     // a network's
  if (flag.name == "resume") values.paths = FlagValues::kFolders;  // a run's
  values.list = flag.meta.ends_with(",...") || flag.meta == "LIST";
  return values;
}

std::vector<std::string> spellings_of(const FlagEntry& flag) {
  std::vector<std::string> words{"--" + flag.name};
  if (flag.negatable) words.push_back("--no-" + flag.name);
  return words;
}

std::string bash_completion(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  std::string table;
  for (const CommandEntry& command : commands) {
    if (command.topic.empty()) names.push_back(command.name);
    table += rows_of(command);
  }
  return "# bash completion of cputrain; written by cputrain_manual from the program's table of "
         "flags\n# shellcheck shell=bash disable=SC2034\n\n_cputrain_commands=" +
         in_quotes(join(names, " ")) + "\n\n# command|flag|one or list|files or folders|words\n" +
         "_cputrain_table=" + in_quotes(table) + "\n" + kBashFunction;
}

std::string zsh_completion(const std::vector<CommandEntry>& commands) {
  std::string text =
      "#compdef cputrain\n# Written by cputrain_manual from the program's table of flags.\n\n";
  std::string list, cases;
  for (const CommandEntry& command : commands) {
    text += command.topics.empty()
                ? function_name(command) + "() {\n  " + arguments(command) + "\n}\n\n"
                : with_topics(command, commands);
    if (!command.topic.empty()) continue;
    list += described(command.name, command.summary);
    cases += "    " + command.name + ") shift words; (( CURRENT-- )); " + function_name(command) +
             " ;;\n";
  }
  // Flags right behind the program's name are those of train.
  return text +
         "_cputrain() {\n  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n    local -a "
         "commands\n    commands=(" +
         list + ")\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n" +
         cases + "    *) _cputrain_train ;;\n  esac\n}\n\n_cputrain \"$@\"\n";
}

std::map<std::string, std::string> manual_files(const std::vector<CommandEntry>& commands) {
  return {{"man/cputrain.1", man_page(commands)},
          {"bash/cputrain", bash_completion(commands)},
          {"zsh/_cputrain", zsh_completion(commands)}};
}

}  // namespace cputrain::cli
