# What bash does with the table that comes before. A word such as --flag=value is one word or three, by what
# COMP_WORDBREAKS has.
# shellcheck shell=bash
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
