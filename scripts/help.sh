# shellcheck shell=bash
# Sourced by scripts at their beginning: `answer_help "$@"` answers --help and -h, wherever they stand before
# a `--`, with the comment at the script's head, and ends; nothing is done then.

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
