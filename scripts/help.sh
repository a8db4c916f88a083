# shellcheck shell=bash
# Sourced by scripts at their beginning: what all of them share. `answer_help "$@"` answers --help and -h, wherever they
# stand before a `--`, with the comment at the script's head, and ends; nothing is done then.

# Numbers have a point and texts are in the order of their bytes, whatever the locale: in one with a decimal comma, mawk
# (Debian's awk) reads 0.5694 as 0. Messages of programs stay in the person's language.
awk() { LC_ALL=C command awk "$@"; }
sort() { LC_ALL=C command sort "$@"; }

answer_help() {
  local word
  for word in "$@"; do
    [[ $word != -- ]] || return 0
    if [[ $word == --help || $word == -h ]]; then
      awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
      exit 0
    fi
  done
}

# wrong_use MESSAGE...  ends with 2.
wrong_use() {
  echo "$(basename "$0"): $* (--help says what it takes)" >&2
  exit 2
}

# take_no_more WORD...  where the script knows none.
take_no_more() { [[ $# -eq 0 ]] || wrong_use "unknown word $1"; }

# read_flags WORD...  reads flags up to `--` or the first word that is none; `rest` has the words from there on.
# `allowed` maps those that have a value to the variable it sets, as --flag VALUE or --flag=VALUE; `switches` those that
# have none. Hyphens and underscores are the same. A value may be empty for the flag in `may_be_empty`.
declare -A allowed=() switches=()
may_be_empty='' rest=()
read_flags() {
  local flag value
  while [[ ${1-} == -* && $1 != -- ]]; do
    flag=${1%%=*}
    flag=${flag//_/-}
    if [[ -n ${switches[$flag]-} ]]; then
      [[ $1 != *=* ]] || wrong_use "$flag takes no value"
      printf -v "${switches[$flag]}" true
      shift
      continue
    fi
    [[ -n ${allowed[$flag]-} ]] || wrong_use "unknown flag $1; allowed are ${!allowed[*]} ${!switches[*]}"
    if [[ $1 == *=* ]]; then
      value=${1#*=}
    else
      [[ $# -gt 1 && $2 != -- && -z ${allowed[${2:-x}]-}${switches[${2:-x}]-} ]] || wrong_use "$flag needs a value"
      value=$2
      shift
    fi
    [[ -n $value || $flag == "$may_be_empty" ]] || wrong_use "$flag needs a value"
    printf -v "${allowed[$flag]}" '%s' "$value"
    shift
  done
  # shellcheck disable=SC2034  # those who source this read it
  rest=("$@")
}

# quoted WORD...  as any POSIX shell reads them: the one at the other end of ssh need not be bash.
quoted() {
  local word apart='' mark="'\\''"
  for word; do
    [[ $word =~ ^[A-Za-z0-9_@%+=:,./-]+$ ]] || word="'${word//\'/"$mark"}'"
    printf '%s%s' "$apart" "$word"
    apart=' '
  done
}

# use_tmpdir  before the first temporary file is made: a TMPDIR that cannot take any is replaced, with a line.
use_tmpdir() {
  local folder file
  for folder in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
    file=$(mktemp -- "$folder/cputrain.XXXXXX" 2>/dev/null) || continue
    rm -f -- "$file"
    [[ $folder == "${TMPDIR:-/tmp}" ]] ||
      echo "$(basename "$0"): ${TMPDIR:-/tmp} takes no file; temporary files go to $folder" >&2
    TMPDIR=$(cd -- "$folder" && pwd)
    export TMPDIR
    return 0
  done
  wrong_use "no folder takes temporary files (${TMPDIR:+$TMPDIR, }/tmp, /var/tmp); set TMPDIR to one"
}
