#include "cli/manual/manual_files.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

/// What bash does with the table. A word such as --flag=value is one word or three, by what
/// COMP_WORDBREAKS has.
constexpr const char* kFunction = R"sh(
# Sets words, paths and list from the row of a command and a flag, or of its flags and topics.
_cputrain_row() {
  local command name
  while IFS='|' read -r command name list paths words; do
    [[ $command != "$1" || $name != "$2" ]] || return 0
  done <<<"$_cputrain_table"
  words= paths= list=
}

_cputrain() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flag= begin= word
  local command=train topics= first=${COMP_WORDS[1]-} words= paths= list=
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
    _cputrain_row "$command" topics
    topics=$words
    [[ -z $topics || COMP_CWORD -eq 2 ]] || command+=" ${COMP_WORDS[2]}"
  fi
  _cputrain_row "$command" "${flag//_/-}"
  if [[ -z $words && -z $paths ]]; then
    [[ -z $list ]] || return  # a value that nobody can guess
    if [[ COMP_CWORD -eq 1 && $cur != -* ]]; then
      words=$_cputrain_commands
    elif [[ COMP_CWORD -eq 2 && -n $topics && $cur != -* ]]; then
      words=$topics
    elif [[ $cur == -* ]]; then
      _cputrain_row "$command" flags
      words=${words:---help}
      [[ COMP_CWORD -ne 1 ]] || words+=' --version'
    else
      _cputrain_row "$command" words
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

/// Rows: command, flag, whether its value is one or a list ("" for a switch), what paths it may be,
/// what words. A command's own rows have its flags, its topics, and what it takes beside them.
std::string rows_of(const CommandEntry& command) {
  const std::string name = command.full_name();
  std::string text;
  const auto add = [&](const std::string& row, const std::string& list, FlagValues::Paths paths,
                       const std::vector<std::string>& words) {
    text +=
        join(std::vector{name, row, list, std::string(paths_word(paths)), join(words, " ")}, "|") +
        "\n";
  };
  std::vector<std::string> flags, topics;
  for (const TopicEntry& topic : command.topics) topics.push_back(topic.name);
  for (const FlagEntry& flag : command.flags) {
    for (const std::string& word : spellings_of(flag)) flags.push_back(word);
    if (!flag.takes_value) continue;
    const FlagValues values = values_of(flag);
    std::vector<std::string> names = flag.aliases;
    names.push_back(flag.name);
    for (const std::string& each : names)
      add("--" + each, values.list ? "list" : "one", values.paths, values.words);
  }
  add("flags", "", FlagValues::Paths::none, flags);
  add("topics", "", FlagValues::Paths::none, topics);
  add("words", "", paths_of(command), {});
  return text;
}

}  // namespace

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
         "_cputrain_table=" + in_quotes(table) + "\n" + kFunction;
}

}  // namespace cputrain::cli
