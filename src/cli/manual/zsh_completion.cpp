#include "cli/manual/manual_files.h"

#include <algorithm>

#include "core/text.h"

namespace cputrain::cli {
namespace {

/// In a specification of _arguments a colon ends a field, a bracket the description.
std::string field(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  for (const char* special : {":", "[", "]"})
    text = replaced(std::move(text), special, std::string("\\") + special);
  return text;
}

const char* paths_action(FlagValues::Paths paths) {
  if (paths == FlagValues::Paths::files) return "_files";
  return paths == FlagValues::Paths::folders ? "_files -/" : "";
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
  const FlagValues::Paths paths = paths_of(command);
  if (paths != FlagValues::Paths::none)
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

}  // namespace cputrain::cli
