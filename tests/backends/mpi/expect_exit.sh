#!/bin/sh
# expect_exit.sh CODE WORDS COMMAND...: runs the command and succeeds when it exits with CODE (`failure`:
# any but 0) and has printed WORDS (an extended regular expression).
code=$1
words=$2
shift 2
output=$("$@" 2>&1)
found=$?
printf '%s\n' "$output"
[ "$found" -eq 0 ] || [ "$code" != failure ] || code=$found
[ "$found" = "$code" ] || { echo "exit code $found instead of $code"; exit 1; }
printf '%s\n' "$output" | grep -Eq "$words" || { echo "'$words' is not in the output"; exit 1; }
