# shellcheck shell=bash
# shellcheck disable=SC2154  # command, out, code and others: of scripts/supervise, which sources this
# How many ranks a start has. Where some are lost the training goes on with the others, and after a cool-down with all.

all_ranks=''  # of the command, where it says so
ranks=''      # of the running start, where known
wanted=''     # no more than these; empty: all
shrinks=false
# read_ranks  lets the program know that the training goes on without a rank that is lost.
read_ranks() {
  all_ranks=$(value_of -np --np -n -c) && [[ $all_ranks =~ ^[1-9][0-9]{0,8}$ ]] || all_ranks=''
  [[ " ${command[*]} " != *" : "* ]] || return 0  # several programs, or parts of a job, have a number each
  [[ -n $all_ranks ]] || is_mpirun "${command[0]}" || return 0
  local asked_for
  if ! asked_for=$(value_of --on-failure); then
    asked_for=${CPUTRAIN_ON_FAILURE-}
    [[ -n $asked_for ]] || { asked_for=shrink; command+=(--on-failure shrink); }
  fi
  [[ $asked_for != shrink ]] || shrinks=true
}

# use_ranks  gives `start` as many ranks as the hosts that answer take (`ranks`), and no more than wanted. Where those
# hosts take no more, the ranks that were lost are those of hosts that do not answer.
use_ranks() {
  if [[ -n $ranks && -n $wanted && $ranks -le $wanted ]]; then wanted=''; fi
  ranks=${wanted:-$ranks}
  [[ $ranks == "$all_ranks" ]] || replace "-np --np -n -c" "$ranks"
}

count_stalls() { [[ -r $out/stalls.jsonl ]] && wc -l <"$out/stalls.jsonl" || echo 0; }

# stall_line N  the Nth line, which has its time; empty where there is none
stall_line() { [[ $1 -gt 0 && -r $out/stalls.jsonl ]] && sed -n "${1}p" "$out/stalls.jsonl" || true; }

# new_stalls  the lines of the training that ended. With --overwrite a training begins the file anew.
new_stalls() {
  local known=$stalls
  [[ $(stall_line "$known") == "$last_stall" ]] || known=0
  tail -n "+$((known + 1))" "$out/stalls.jsonl"
}

# unanswered_ranks  how many the training that ended had waited for. Where a link was cut both sides say so: the word of
# the lowest rank counts. A rank that names itself alone is there; its storage hung.
unanswered_ranks() {
  [[ -r $out/stalls.jsonl ]] || { echo 0; return; }
  new_stalls |
    sed -n '/"event":"end"/s/.*"ranks":\[\([0-9,]*\)\].*"by":\([0-9]*\).*/\2 \1/p' | sort -n |
    awk 'NR == 1 { lost = $2 == $1 ? 0 : split($2, list, ",") } END { print lost + 0 }'
}

# ended_by_stall  whether the training that ended said that it ends for ranks that do not answer. MPICH's launcher
# passes on the signal with which it ended the others in the place of 76.
ended_by_stall() {
  [[ -r $out/stalls.jsonl ]] && new_stalls | grep -q '"event":"end"'
}

# lost_ranks  how many did not live to the end of the training: 76 has their list, and a launcher passes on the signal
# that killed one. One that was killed itself leaves its folder behind, and lost no rank.
lost_ranks() {
  local folders=${OMPI_MCA_orte_tmpdir_base-$session}
  if [[ $code -eq 76 ]]; then
    unanswered_ranks
  elif [[ $code -gt 128 && $code -ne 143 ]] && ! compgen -G "$folders/*/*.$last_job" >/dev/null; then
    echo 1
  else
    echo 0
  fi
}

# shrink  after a failure: without the ranks that were lost, where enough are left; with all of them else.
shrink() {
  local lost left all
  $shrinks || return 0
  lost=$(lost_ranks)
  [[ $lost -gt 0 ]] || return 0
  # Where the launcher decided how many there are, the training wrote it down.
  [[ -n $ranks ]] || ranks=$(sed -n '/^ *"ranks": *[0-9]/{s/[^0-9]//gp;q}' "$out/environment.json" 2>/dev/null) || true
  [[ -n $ranks ]] || return 0
  left=$((ranks - lost)) all=${all_ranks:-$ranks}
  if [[ $left -ge $min_ranks ]]; then
    wanted=$left
    say "ranks lost: $lost; $left of $all ranks go on"
  else
    wanted=''
    say "ranks lost: $lost; $left of $all ranks would be less than --min-ranks $min_ranks: all are started again"
  fi
}

# fewer_are_refused  whether the training takes no smaller number of ranks (2), as with --batch-per-rank.
fewer_are_refused() {
  [[ -n $wanted && $code -eq 2 ]] || return 1
  say "the training cannot go on with $wanted ranks: all are started again, now and after every failure"
  wanted='' shrinks=false
}
