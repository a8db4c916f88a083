# shellcheck shell=bash
# Shared by the scripts of this folder, which source it. Their --help is the comment of the script and this:
#
#   scripts/datasets/NAME [--offline] [--from URL] [--yes] DIR
#
#   DIR        folder of the data set
#   --offline  only check what is there
#   --from     a URL, or file:///..., of a folder that holds the same files as the home of the set
#   --yes      says that you have read the licence and accept it, where a set needs that
#
# Files that are there already are checked and never fetched again. Exit codes: 0 the set is whole; 2 wrong
# usage; 65 a file is not the published one; 69 something is missing (the message says what to do).
set -euo pipefail

# shellcheck source=scripts/help.sh
source "$(dirname "${BASH_SOURCE[0]}")/../help.sh"
name=$(basename "$0")

stop() {  # CODE MESSAGE...
  local code=$1
  shift
  printf '%s: %s\n' "$name" "$*" >&2
  exit "$code"
}

# Sets dir, offline, from (DEFAULT: the set's own home) and accepted.
# shellcheck disable=SC2034  # those who source this read them
arguments() {  # DEFAULT ARGUMENT...
  local word
  from=$1 offline='' accepted='' dir=''
  shift
  for word; do
    [[ $word == --help || $word == -h ]] || continue
    sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0" | grep -v '^shellcheck'
    sed -n "3,/^set/ { s/^# \{0,1\}//; s/NAME/$name/; /^set/!p }" "${BASH_SOURCE[0]}"
    exit 0
  done
  allowed=([--from]=from) switches=([--offline]=offline [--yes]=accepted)
  while [[ $# -gt 0 ]]; do  # the folder stands anywhere among the flags
    read_flags "$@"
    set -- "${rest[@]}"
    [[ ${1-} != -- ]] || shift
    [[ $# -gt 0 ]] || break
    [[ -z $dir ]] || wrong_use "$1 is one word too many"
    dir=$1
    shift
  done
  [[ -n $dir ]] || wrong_use "needs the folder of the data set: scripts/datasets/$name DIR"
}

bytes_of() { stat -c %s "$1"; }

# The sum of a file by the kind of sum that is wanted: MD5 has 32 digits, SHA-256 64.
sum_like() {  # FILE SUM
  if [[ ${#2} -eq 32 ]]; then md5sum <"$1"; else sha256sum <"$1"; fi | cut -d' ' -f1
}

check_sum() {  # FILE SUM; an empty one is not known
  local sum
  [[ -n $2 ]] || return 0
  sum=$(sum_like "$1" "$2")
  [[ $sum == "$2" ]] || stop 65 "'$1' has the sum $sum instead of $2 (it is damaged, or another \
file); remove it and run this again"
  echo "$1: sum as published"
}

check_bytes() {  # FILE BYTES
  [[ $(bytes_of "$1") -eq $2 ]] || stop 65 "'$1' has $(bytes_of "$1") bytes instead of $2 (it is \
damaged, or another file); remove it and run this again"
}

# Fetches $from/FILE into DIR unless it is there, whole or not at all, and checks it.
fetch() {  # FILE SUM
  local file=$dir/$1
  if [[ ! -e $file ]]; then
    [[ -z $offline ]] || stop 69 "'$file' is missing; run this again without --offline"
    command -v curl >/dev/null || stop 69 "curl is not installed (it fetches the files); install it, \
or put $from/$1 into '$dir' by hand"
    mkdir -p "$dir"
    echo "fetching $from/$1"
    curl --fail --location --retry 3 --continue-at - --silent --show-error \
      --output "$file.part" "$from/$1" || stop 69 "'$from/$1' cannot be fetched; try later, name \
another place with --from URL, or put the file into '$dir' by hand and run this again"
    mv "$file.part" "$file"
  fi
  check_sum "$file" "$2"
}

# Unpacks these members alone, whatever else the archive holds.
unpack_tar() {  # ARCHIVE MEMBER...
  local archive=$1
  shift
  tar --extract --gzip --file "$archive" --directory "$dir" --no-same-owner "$@" ||
    stop 65 "'$archive' cannot be unpacked; remove it and run this again"
}

# Python's zipfile keeps members below the folder, whatever their names say.
unpack_zip() {  # ARCHIVE
  python3 -m zipfile -e "$1" "$dir" || stop 65 "'$1' cannot be unpacked; remove it and run this again"
}

# Regular files of a folder whose names fit.
count_files() {  # FOLDER PATTERN
  find "$1" -maxdepth 1 -type f -name "$2" 2>/dev/null | wc -l
}

check_count() {  # FOLDER PATTERN COUNT
  local count
  count=$(count_files "$1" "$2")
  [[ $count -eq $3 ]] || stop 65 "'$1' holds $count files $2 instead of $3; remove the folder and \
run this again"
}
