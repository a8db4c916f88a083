#include "cli/manual/manual_files.h"

#include <map>
#include <set>

#include "cli/manual/flag_values.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

/// What bash does with the tables below. A word such as --flag=value is one word or three, by what
/// COMP_WORDBREAKS has.
constexpr const char* kFunction = R"sh(
_cputrain() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flag= begin= word
  local command=train topic= first=${COMP_WORDS[1]-} words= paths= list=
  COMPREPLY=()
  if [[ $cur == = ]]; then
    flag=$prev cur=
  elif [[ $prev == = && COMP_CWORD -gt 2 ]]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $cur == --*=* ]]; then
    flag=${cur%%=*} begin=${cur%%=*}= cur=${cur#*=}
  elif [[ $prev == --* ]]; then
    flag=$prev
  fi
  if [[ COMP_CWORD -gt 1 && $first != -* ]]; then
    command=$first
    [[ -z $(_cputrain_topics "$command") || COMP_CWORD -eq 2 ]] || topic=" ${COMP_WORDS[2]}"
  fi
  [[ -z $flag ]] || _cputrain_values "$command$topic" "${flag//_/-}"
  if [[ -z $words && -z $paths ]]; then
    if [[ -n $flag && -n $list ]]; then
      return  # a value that nobody can guess
    elif [[ COMP_CWORD -eq 1 && $cur != -* ]]; then
      words=$_cputrain_commands
    elif [[ COMP_CWORD -eq 2 && -n $(_cputrain_topics "$command") && $cur != -* ]]; then
      words=$(_cputrain_topics "$command")
    elif [[ $cur == -* ]]; then
      words=$(_cputrain_flags "$command$topic")
      [[ COMP_CWORD -ne 1 ]] || words+=' --version'
    else
      paths=$(_cputrain_paths "$command$topic")
    fi
  fi
  if [[ $list == list && $cur == *,* ]]; then
    begin+=${cur%,*}, cur=${cur##*,}
  fi
  for word in $words; do
    [[ $word != "$cur"* ]] || COMPREPLY+=("$begin$word")
  done
  [[ -n $paths ]] || return
  local action=-f
  [[ $paths == files ]] || action=-d
  compopt -o filenames 2>/dev/null
  while IFS= read -r word; do COMPREPLY+=("$begin$word"); done < <(compgen "$action" -- "$cur")
}
complete -F _cputrain cputrain
)sh";

const char* paths_word(FlagValues::Paths paths) {
  if (paths == FlagValues::Paths::files) return "files";
  return paths == FlagValues::Paths::folders ? "folders" : "";
}

std::string flags_function(const std::vector<CommandEntry>& commands) {
  std::string text = "_cputrain_flags() {\n  case $1 in\n";
  for (const CommandEntry& command : commands) {
    std::vector<std::string> words;
    for (const FlagEntry& flag : command.flags) {
      for (const std::string& word : spellings_of(flag)) words.push_back(word);
    }
    if (!words.empty())
      text += "    " + in_quotes(command.full_name()) + ") echo " + in_quotes(join(words, " ")) +
              " ;;\n";
  }
  return text + "    *) echo --help ;;\n  esac\n}\n\n";
}

std::string topics_function(const std::vector<CommandEntry>& commands) {
  std::string text = "_cputrain_topics() {\n  case $1 in\n";
  for (const CommandEntry& command : commands) {
    if (command.topics.empty()) continue;
    std::vector<std::string> names;
    for (const TopicEntry& topic : command.topics) names.push_back(topic.name);
    text += "    " + command.name + ") echo " + in_quotes(join(names, " ")) + " ;;\n";
  }
  return text + "    *) ;;\n  esac\n}\n\n";
}

std::string paths_function(const std::vector<CommandEntry>& commands) {
  std::string text = "_cputrain_paths() {\n  case $1 in\n";
  for (const CommandEntry& command : commands) {
    if (paths_of(command) != FlagValues::Paths::none) {
      text += "    " + in_quotes(command.full_name()) + ") echo " + paths_word(paths_of(command)) +
              " ;;\n";
    }
  }
  return text + "    *) ;;\n  esac\n}\n\n";
}

std::string assignments(const FlagValues& values) {
  return "words=" + in_quotes(join(values.words, " ")) + " paths='" + paths_word(values.paths) +
         "'" + " list=" + (values.list ? "list" : "one");
}

/// "'train --data'|'eval --data') words=..." for each flag that takes a value, and one pattern for
/// those whose values are the same in all commands.
std::string values_function(const std::vector<CommandEntry>& commands) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_flag;
  for (const CommandEntry& command : commands) {
    for (const FlagEntry& flag : command.flags) {
      if (!flag.takes_value) continue;
      std::vector<std::string> words = flag.aliases;
      words.push_back(flag.name);
      for (const std::string& word : words)
        by_flag["--" + word][assignments(values_of(flag))].push_back(command.full_name());
    }
  }
  std::map<std::string, std::string> patterns;  // by what they lead to
  for (const auto& [flag, by_values] : by_flag) {
    for (const auto& [values, names] : by_values) {
      std::string& pattern = patterns[values];
      if (by_values.size() == 1) {
        pattern += (pattern.empty() ? "" : "|") + ("*' " + flag + "'");
        continue;
      }
      for (const std::string& name : names)
        pattern += (pattern.empty() ? "" : "|") + in_quotes(name + " " + flag);
    }
  }
  std::string text =
      "# Sets words, paths and list to what may follow a flag; list stays empty after a switch.\n"
      "_cputrain_values() {\n  case \"$1 $2\" in\n";
  for (const auto& [values, pattern] : patterns) text += "    " + pattern + ") " + values + " ;;\n";
  return text + "    *) ;;\n  esac\n}\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) {
    if (command.topic.empty()) names.push_back(command.name);
  }
  return "# bash completion of cputrain; written by cputrain_manual from the program's table of "
         "flags\n# shellcheck shell=bash disable=SC2034\n\n_cputrain_commands=" +
         in_quotes(join(names, " ")) + "\n\n" + flags_function(commands) +
         topics_function(commands) + paths_function(commands) + values_function(commands) +
         kFunction;
}

}  // namespace cputrain::cli
